"""Kinds of models, by the names of their tasks."""

CLASSIFICATION, PRETRAINING = "image_classification", "image_pretraining"


def is_of_images(task: str | None) -> bool:
    """Whether a task is one of images; all others are of text.

    >>> is_of_images(PRETRAINING), is_of_images("translation"), is_of_images(None)
    (True, False, False)
    """
    return str(task).startswith("image_")
