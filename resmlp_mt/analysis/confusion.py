"""Which classes a classifier takes for which, counted over pictures whose classes are known."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class ClassScore:
    """How one class fares.

    Attributes:
        index: The class.
        images: How many images are of the class.
        guessed: How many images are taken for it.
        hits: How many images are both.
        mistaken: The class that it is most often taken for besides itself; None: for none.
    """

    index: int
    images: int
    guessed: int
    hits: int
    mistaken: int | None

    @property
    def recall(self) -> float | None:
        """Percentage of its images that are taken for it; None where there are none."""
        return percent(self.hits, self.images)

    @property
    def precision(self) -> float | None:
        """Percentage of what is taken for it that is of it; None where nothing is."""
        return percent(self.hits, self.guessed)


class Confusion:
    """The confusion matrix of a classifier. It grows with the pairs of classes that are mixed up.

    Attributes:
        rows: For each class, how many of its images were taken for which.
        images: How many there are.
        top1, top5: Of how many the class is the first guess, or one of the first five.
    """

    def __init__(self, num_classes: int):
        self.rows: list[Counter[int]] = [Counter() for _ in range(num_classes)]
        self.images = self.top1 = self.top5 = 0

    def add(self, target: int, guesses: Sequence[int]) -> None:
        """Count an image of the class `target`; `guesses` are classes, the most probable first."""
        self.rows[target][guesses[0]] += 1
        self.images += 1
        self.top1 += guesses[0] == target
        self.top5 += target in guesses[:5]

    def score_classes(self) -> list[ClassScore]:
        """How each class fares, in the order of the model."""
        guessed: Counter[int] = Counter()
        for row in self.rows:
            guessed.update(row)
        return [
            ClassScore(
                index,
                row.total(),
                guessed[index],
                row[index],
                next((other for other in by_number(row) if other != index), None),
            )
            for index, row in enumerate(self.rows)
        ]

    def most_mixed(self, count: int) -> list[int]:
        """That many classes, in the order of the model: those of the commonest confusions.

        If there are fewer, others that have images come along.
        """
        if count >= len(self.rows):
            return [*range(len(self.rows))]
        pairs = Counter(
            {(c, g): n for c, row in enumerate(self.rows) for g, n in row.items() if g != c}
        )
        mixed = [c for pair in by_number(pairs) for c in pair]
        seen = [c for c, row in enumerate(self.rows) if row]
        return sorted([*dict.fromkeys(mixed + seen)][:count])


def by_number(counts: Counter) -> list:
    """The things counted, the most frequent first, and else in order."""
    return sorted(counts, key=lambda item: (-counts[item], item))


def percent(part: int, whole: int) -> float | None:
    """The share in percent; None of nothing."""
    return 100 * part / whole if whole else None
