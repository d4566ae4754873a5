_codewhale() {
    local line="${COMP_LINE:0:COMP_POINT}" word cut value about
    local -a words
    read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    word="${words[${#words[@]}-1]}"
    cut="${word%"${word##*[:=]}"}"
    COMPREPLY=()
    while IFS=$'\t' read -r value about; do
        COMPREPLY+=("${value#"$cut"}")
    done < <(codewhale completion --words "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _codewhale codewhale
