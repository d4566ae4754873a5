"""Bytes of a log damaged at random: it opens, reports, and loses only what was damaged."""

import random
from pathlib import Path

from codewhale.session.log import SessionLog
from codewhale.session.store import SessionStore
from support.spoiling import damaged
from support.storage import HandClock, QuickOps, events, new_log, said

DAMAGES = 500


def test_500_damages(tmp_path: Path) -> None:
    log = new_log(tmp_path, 60)
    before = events(log.read())
    log.close()
    path = Path(log.path)
    folder = str(path.parent)
    data = path.read_bytes()
    starts = [0]
    for line in data.split(b"\n")[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    store = SessionStore(str(tmp_path), HandClock())
    for seed in range(DAMAGES):
        spoilt, ranges, kind = damaged(data, random.Random(seed))
        path.write_bytes(spoilt)
        touched = {
            seq
            for seq in range(1, len(starts))
            if any(first < starts[seq] and last >= starts[seq - 1] for first, last in ranges)
        }
        if len(touched) == len(before):
            continue
        unheld = events(store.read(log.session))
        again = SessionLog(folder, HandClock(), ops=QuickOps())
        kept = events(again.read())
        case = (seed, kind, ranges)
        assert kept == unheld, case
        lost = {seq for seq, _ in before} - {seq for seq, _ in kept}
        assert lost <= touched, (case, lost, touched)
        assert [one for one in before if one[0] not in lost] == kept, case
        harmless = kind == "truncate" and ranges[0][0] in (*starts, *(start - 1 for start in starts))
        assert bool(again.damage) or harmless or spoilt == data or kind == "double", case
        if lost and not harmless:
            assert again.damage.cut_bytes or again.damage.skipped_lines, case
        after = again.append([said("goes on")])
        again.close()
        assert events(store.read(log.session)) == kept + events(after), case
        Path(log.path + ".corrupt").unlink(missing_ok=True)
