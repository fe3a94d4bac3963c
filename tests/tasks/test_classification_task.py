import math
import sys
from types import SimpleNamespace

import pytest
import torch
from cli.commands import write_misfit_timm
from cli.pictures import CLASSES, draw_pictures
from models.test_families import FAMILIES, tiny
from torch import nn
from torch.testing import assert_close

from resmlp_mt.criterions.image_classification import ImageClassificationCriterion
from resmlp_mt.data.augment import Normalise
from resmlp_mt.errors import UserError
from resmlp_mt.tasks.image_classification import (
    ResMLPImageClassificationConfig,
    ResMLPImageClassificationTask,
)
from resmlp_mt.tasks.teacher import Teacher, load_teacher

PLAIN = dict(image_size=8, hflip=0.0, color_jitter=0.0, seed=1)


class Sums(nn.Module):
    """Logits that show what the model was given: the sums of the channels."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, images):
        return self.scale * images.sum((2, 3))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    draw_pictures(folder, {"train": 2, "valid": 2})
    return folder


def build(**flags):
    return ResMLPImageClassificationTask(ResMLPImageClassificationConfig(**PLAIN | flags))


def samples(task, split):
    task.load_dataset(split)
    dataset = task.dataset(split)
    return dataset.collater([dataset[i] for i in range(len(dataset))])


def test_the_head_has_an_output_for_each_class_of_the_training_folder(pictures):
    task = build(data=str(pictures))
    assert task.classes == list(CLASSES)
    assert task.build_head(5).weight.shape == (3, 5)


def test_more_outputs_than_classes_can_be_asked_for_but_not_fewer(pictures):
    assert build(data=str(pictures), num_classes=7).build_head(5).weight.shape == (7, 5)
    with pytest.raises(UserError, match="--num-classes 2 is too small for the 3 classes"):
        build(data=str(pictures), num_classes=2).build_head(5)


def test_a_task_with_the_state_of_a_checkpoint_needs_no_data():
    task = build(data="nowhere")
    task.load_state_dict({"classes": ["a", "b"]})
    assert task.build_head(5).weight.shape == (2, 5)


@pytest.mark.parametrize(
    ("known", "rows", "said"),
    [
        (["above", "left", "over"], [0, 1, 2, 3], ""),
        (["over", "above", "left"], [1, 2, 0, 3], ""),
        (["over", "above", "right"], None, "x.pt has other classes: the head starts anew\n"),
        (["0", "1", "2"], None, "name its classes with 'resmlp-mt import-weights --classes'"),
        ([], [0, 1, 2, 3], ""),  # of another program, or of another task
    ],
)
def test_heads_of_a_checkpoint_are_brought_to_the_classes_of_the_data(
    known, rows, said, pictures, caplog
):
    task = build(data=str(pictures), num_classes=4)  # one more than there are
    model = nn.Sequential()
    model.head = nn.Linear(2, 4)
    old = {"head.weight": torch.randn(4, 2), "head.bias": torch.randn(4), "stem": torch.ones(1)}
    state = {"model": old, "extra_state": {"ema": old, "ema_fp32_params": old}}
    state["task_state"] = {"classes": known}
    task.adopt_state(state, "x.pt", model, tunes=True)
    own = {f"head.{name}": tensor for name, tensor in model.head.state_dict().items()}
    for weights in (state["model"], *state["extra_state"].values()):
        for name in ("head.weight", "head.bias"):
            assert_close(weights[name], own[name] if rows is None else old[name][rows])
        assert weights["stem"] is old["stem"]
    assert said in caplog.text and bool(caplog.text) == bool(said)


def test_a_training_does_not_go_on_with_other_classes(pictures):
    task = build(data=str(pictures))
    for known, said in (
        (["above", "over"], "it alone has left; go on with those"),
        (["over", "above", "left"], "they have another order; go on with those"),
    ):
        state = {"task_state": {"classes": known}}
        with pytest.raises(UserError, match=f"not the classes that x.pt was trained on: {said}"):
            task.adopt_state(state, "x.pt", nn.Linear(2, 3), tunes=False)


def test_targets_count_the_classes_as_the_model_does(pictures):
    task = build(data=str(pictures))
    task.load_state_dict({"classes": ["over", "above", "left"]})
    batch = samples(task, "valid")
    named = [task.dataset("valid").folder.names[i].split("/")[-2] for i in batch["id"]]
    assert [task.classes[target] for target in batch["target"]] == named


def test_validating_the_training_images_is_an_evaluation(pictures):
    task = build(data=str(pictures), teacher_model="gone")
    task.load_dataset("train", combine=False, epoch=1, task_cfg=task.cfg)
    assert not task.dataset("train").train
    assert task.dataset("train").ordered_indices().tolist() == list(range(6))


def test_training_pictures_are_augmented_and_others_are_not(pictures):
    def images(split, **flags):
        return samples(build(data=str(pictures), **flags), split)["net_input"]["images"]

    plain = images("train")
    assert torch.equal(images("train", hflip=1.0), plain.flip(3))
    operations = dict(aa="rand-m9-p1-inc1")
    assert (images("train", **operations) != plain).flatten(1).any(1).float().mean() > 0.5
    assert torch.equal(images("valid", hflip=1.0, **operations), images("valid"))


def test_another_loss_than_the_tasks_is_refused():
    cfg = SimpleNamespace(_name="cross_entropy")
    with pytest.raises(UserError, match="needs --criterion image_classification"):
        build().build_criterion(cfg)


def test_the_model_gets_normalised_pixels_in_its_own_precision(pictures):
    task = build(data=str(pictures), mean=[0.5, 0.4, 0.3], std=[0.2, 0.3, 0.4])
    seen = {}

    def criterion(model, sample):
        seen.update(sample)
        return torch.zeros(()), 1, {}

    batch = samples(task, "valid")
    task.valid_step(batch, Sums().bfloat16(), criterion)
    expected = Normalise([0.5, 0.4, 0.3], [0.2, 0.3, 0.4])(batch["net_input"]["images"])
    assert_close(seen["net_input"]["images"], expected.bfloat16())
    assert batch["net_input"]["images"].dtype == torch.uint8  # left as it was


def test_the_averaged_model_is_evaluated_beside_the_trained_one(pictures):
    task = build(data=str(pictures))
    batch = samples(task, "valid")

    def criterion(model, sample):
        return torch.zeros(()), 6, {"top1": 0}

    _, _, log = task.valid_step(batch, Sums(), criterion, ema_model=Sums())
    images = task.normalise(batch["net_input"]["images"])
    hits = images.sum((2, 3)).argmax(1).eq(batch["target"]).sum()
    assert log["top1"] == 0 and log["ema_top1"] == hits and log["ema_top5"] == 6


def test_a_teacher_sees_the_augmented_images_in_its_own_size_and_normalisation():
    student, own = Normalise([0.5] * 3, [0.25] * 3), Normalise([0.1, 0.2, 0.3], [2.0, 3.0, 4.0])
    pixels = torch.rand(2, 3, 4, 4)
    teacher = Teacher(Sums(), 4, 3, student, own)
    assert_close(teacher(student.scale(pixels)), own.scale(pixels).sum((2, 3)))
    # One colour stays that colour at any size.
    flat = torch.rand(2, 3, 1, 1).expand(2, 3, 4, 4)
    larger = Teacher(Sums(), 8, 3, student, own)
    assert_close(larger(student.scale(flat)), 4 * own.scale(flat).sum((2, 3)))
    assert not any(p.requires_grad for p in teacher.parameters())
    # Of the outputs that stand for no class nothing is learnt.
    assert_close(Teacher(Sums(), 4, 2, student, own)(pixels), teacher(pixels)[:, :2])


@pytest.mark.parametrize("preset", FAMILIES)
def test_every_family_is_a_student_and_a_teacher(preset, pictures, randomised):
    task = build(data=str(pictures), image_size=16)
    flags = dict(task=task, drop_path=0.0)
    student, teacher = (randomised(tiny(preset, **flags)).float() for _ in range(2))
    batch = samples(task, "train")
    task.teacher = Teacher(teacher, 16, 3, task.normalise, task.normalise)
    loss = ImageClassificationCriterion(task, smoothing=0.0, distillation_alpha=1.0)
    optimizer = SimpleNamespace(backward=lambda loss: loss.backward())
    seen = []
    hook = lambda module, _, given: seen.append(given["images"])  # noqa: E731
    handle = student.register_forward_pre_hook(hook, with_kwargs=True)
    value, size, _ = task.train_step(batch, student, loss, optimizer, 0)
    handle.remove()
    with torch.no_grad():
        taught = teacher(seen[0]).argmax(1)
        assert_close(value, nn.functional.cross_entropy(student(seen[0]), taught) * size)
    assert all(weight.grad is not None for weight in student.parameters())
    assert all(weight.grad is None for weight in teacher.parameters())


def test_a_timm_model_teaches_with_its_own_normalisation(monkeypatch):
    model = Sums()
    model.num_classes = 3
    config = {"mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5), "input_size": (3, 4, 4)}
    timm = SimpleNamespace(
        is_model=lambda name: name == "regnety_160",
        create_model=lambda name, pretrained: model if pretrained else None,
        data=SimpleNamespace(resolve_model_data_config=lambda model: config),
    )
    monkeypatch.setitem(sys.modules, "timm", timm)
    task = SimpleNamespace(num_classes=3, normalise=Normalise([0.0] * 3, [1.0] * 3))
    pixels = torch.rand(2, 3, 4, 4)
    taught = load_teacher("regnety_160", task)(pixels)
    assert_close(taught, (2 * pixels - 1).sum((2, 3)))
    task.num_classes = 4
    with pytest.raises(UserError, match="regnety_160 has 3 classes, the data 4"):
        load_teacher("regnety_160", task)


def test_a_folder_of_timms_teaches_as_timm_reads_it(timm, tmp_path):
    config = dict(mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6), input_size=(3, 160, 160))
    model = timm.create_model("test_resnet", num_classes=3).eval()
    model.pretrained_cfg |= config
    timm.models.save_for_hf(model, tmp_path, safe_serialization=True)
    task = SimpleNamespace(num_classes=3, normalise=Normalise([0.5] * 3, [0.25] * 3))
    pixels = torch.rand(2, 3, 160, 160)
    teacher = load_teacher(f"local-dir:{tmp_path}", task)
    own = Normalise(config["mean"], config["std"])
    assert_close(teacher(task.normalise.scale(pixels)), model(own.scale(pixels)))
    with pytest.raises(UserError, match="local-dir:nowhere: timm could not load it"):
        load_teacher("local-dir:nowhere", task)
    with pytest.raises(UserError, match="such_a_model: .*; timm has none of that name"):
        load_teacher("such_a_model", task)


def test_without_timm_its_models_are_not_known(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(UserError, match="no such model.* one of cifar10 .or of timm, which is not"):
        load_teacher("regnety_160", SimpleNamespace())


def test_a_timm_that_cannot_be_imported_is_named(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    monkeypatch.syspath_prepend(write_misfit_timm(tmp_path))
    with pytest.raises(UserError, match="regnety_160: no such model.*cannot be imported .operator"):
        load_teacher("regnety_160", SimpleNamespace())


@pytest.mark.parametrize(
    "flags",
    [
        dict(in_chans=2),
        dict(mean=[0.5]),
        dict(mean=[0.5, math.nan, 0.5]),
        dict(std=[0.5, 0.5]),
        dict(std=[0.5, math.inf, 0.5]),
        dict(std=[0.5, 0.0, 0.5]),
        dict(crop_pct=0.0),
        dict(crop_pct=1.1),
        dict(scale=[0.5]),
        dict(scale=[0.9, 0.1]),
        dict(scale=[0.1, 1.5]),
        dict(ratio=[0.0, 1.0]),
        dict(aug_repeats=0),
        dict(image_size=0),
        dict(num_classes=-3),
        dict(square_resize=7),
    ],
    ids=str,
)
def test_flags_that_mean_nothing_are_refused_by_name(flags):
    (name,) = flags
    with pytest.raises(UserError, match=f"--{name.replace('_', '-')}"):
        build(**flags)
