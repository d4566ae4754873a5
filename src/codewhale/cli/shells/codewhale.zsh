#compdef codewhale
_codewhale() {
    local value about
    local -a found
    while IFS=$'\t' read -r value about; do
        found+=("${value//:/\\:}${about:+:$about}")
    done < <(codewhale completion --words "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    if (( $#found )); then _describe -V -t codewhale codewhale found; else _files; fi
}
if [[ "$funcstack[1]" == _codewhale ]]; then _codewhale "$@"; else compdef _codewhale codewhale; fi
