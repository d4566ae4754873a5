"""Settled blocks after a rewind: gone, and back as they were."""

from codewhale.display.transcript.blocks import TextBlock
from codewhale.display.transcript.model import TranscriptModel
from codewhale.protocol.events import Event, MessageAdded, Rewound, TurnStarted
from codewhale.protocol.messages import Message, Text
from support.tuirecord import envelopes


def test_what_a_rewind_took_back_goes_out_of_sight_until_it_is_undone() -> None:
    def turn(number: int) -> list[Event]:
        said = MessageAdded(Message("user", (Text(f"question {number}"),)))
        return [TurnStarted(number), said, MessageAdded(Message("assistant", (Text(f"answer {number}", "model"),)))]

    def shown(*events: Event) -> list[str]:
        model = TranscriptModel()
        for envelope in envelopes(events):
            model.take(envelope)
        assert [block.id for block in model.settled] == list(range(len(model.settled)))
        return [block.text for block in model.settled if isinstance(block, TextBlock)]

    first, second, third = turn(1), turn(2), turn(3)
    assert shown(*first, *second, Rewound(2)) == ["question 1", "answer 1"]
    assert shown(*first, *second, Rewound(2), Rewound(2, True)) == shown(*first, *second)
    assert shown(*first, *second, Rewound(2), Rewound(1), Rewound(1, True), Rewound(2, True)) == shown(*first, *second)
    assert shown(*first, *second, Rewound(2), *third, Rewound(2, True)) == shown(*first, *third)
    assert shown(*first, Rewound(9), Rewound(1), Rewound(1, True), Rewound(1, True)) == shown(*first)
