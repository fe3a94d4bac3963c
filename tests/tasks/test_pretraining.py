import copy
from dataclasses import fields
from types import SimpleNamespace

import pytest
import torch
from fairseq.dataclass.configs import EMAConfig
from fairseq.models.ema import EMA
from models.test_families import FAMILIES, tiny
from omegaconf import OmegaConf
from torch.testing import assert_close

from resmlp_mt.criterions.dino import DinoCriterion, DinoCriterionConfig
from resmlp_mt.data.views import AugmentViews
from resmlp_mt.errors import UserError
from resmlp_mt.models.image_classification import ResMLPImageConfig, ResMLPImageModel
from resmlp_mt.tasks.image_classification import ResMLPImageClassificationTask
from resmlp_mt.tasks.image_pretraining import (
    ResMLPImagePretrainingConfig,
    ResMLPImagePretrainingTask,
)

B, V, SIDE, K = 6, 4, 16, 32
MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
FLAGS = dict(
    image_size=SIDE,
    mean=MEAN,
    std=STD,
    local_crops_number=V - 2,
    out_dim=K,
    head_hidden_dim=20,
    bottleneck_dim=8,
    store_ema=True,
    ema_fp32=False,
    fp16=False,
    bf16=False,
)


def config(**flags):
    return OmegaConf.structured(ResMLPImagePretrainingConfig(**FLAGS | flags))


def augment(**flags):
    cfg = config(**flags)
    return AugmentViews(cfg, cfg.mean, cfg.std, cfg.image_size)


@pytest.fixture
def task():
    task = ResMLPImagePretrainingTask(config())
    task.augment = augment()
    return task


@pytest.fixture
def model(task):
    cfg = ResMLPImageConfig(patch_size=4, embed_dim=12, layers=2, drop_path=0.0)
    return ResMLPImageModel.build_model(cfg, task)


def sample(views=V):
    images = torch.randint(256, (B, views, 3, SIDE, SIDE), dtype=torch.uint8)
    return {"id": torch.arange(B), "nsentences": B, "net_input": {"images": images}}


def step(task, model, teacher, batch, update_num=0, **flags):
    """One training step without the optimizer's part."""
    torch.manual_seed(5)
    optimizer = SimpleNamespace(backward=lambda loss: loss.backward())
    loss = DinoCriterion(DinoCriterionConfig(), task)
    return task.train_step(batch, model, loss, optimizer, update_num, ema_model=teacher, **flags)


def normalised(images):
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)
    return (images / 255 - mean) / std


def differing(y, x):
    return (y - x).abs().amax((1, 2, 3)) > 1e-4


def test_views_come_one_after_the_other_and_only_the_second_is_solarised():
    many = 100
    grey = torch.randint(256, (many, V, 1, 1, 1), dtype=torch.uint8)
    images = grey.expand(many, V, 3, SIDE, SIDE)
    views = augment(color_jitter=0.0)(images).view(V, many, 3, SIDE, SIDE)
    for v in (0, 2, 3):
        assert_close(views[v], normalised(images[:, v]))
    solarised = differing(views[1], normalised(images[:, 1]))
    # A fifth of the bright half: 10 of 100.
    assert 2 <= solarised.sum() <= 25 and (grey[solarised, 1] >= 127).all()
    assert_close(views[1][solarised], normalised(255 - images[solarised, 1].int()))


def test_the_first_views_are_blurred_where_images_are_large_enough():
    for side, blurred in ((32, False), (96, True)):
        images = torch.randint(256, (2 * B, V, 1, side, side), dtype=torch.uint8)
        views = augment(image_size=side, in_chans=1, mean=[0.0], std=[1.0], hflip=0.0)
        first, _, third, fourth = views(images).split(2 * B)
        changed = differing(first, images[:, 0] / 255)
        # The standard deviation is drawn, and may be too small to change a pixel.
        assert changed.sum() >= B if blurred else not changed.any()
        rough, smooth = (x.diff(dim=-1).abs().mean() for x in (images[:, 0] / 255, first))
        assert smooth < 0.8 * rough if blurred else smooth == rough
        others = differing(
            torch.cat([third, fourth]), images[:, 2:].transpose(0, 1).flatten(0, 1) / 255
        )
        assert 0 < others.sum() < 4 * B if blurred else not others.any()


def test_colours_change_in_most_images_and_flips_in_half():
    images = torch.randint(256, (60, V, 3, SIDE, SIDE), dtype=torch.uint8)
    plain = normalised(images.transpose(0, 1).flatten(0, 1))
    locals_only = slice(2 * 60, None)
    y = augment(hflip=0.0)(images)[locals_only]
    # A fifth is not jittered, four fifths of that not grey either: 16 in 100.
    assert 0.7 < differing(y, plain[locals_only]).float().mean() < 0.97
    flips = augment(hflip=1.0, color_jitter=0.0)(images)[locals_only]
    assert differing(flips, plain[locals_only].flip(3)).float().mean() < 0.4  # those made grey


def test_grey_images_have_views_too():
    images = torch.randint(256, (B, V, 1, SIDE, SIDE), dtype=torch.uint8)
    views = augment(in_chans=1, mean=[0.5], std=[0.5])(images)
    assert views.shape == (V * B, 1, SIDE, SIDE) and views.abs().max() <= 1


@pytest.mark.parametrize("preset", FAMILIES)
def test_the_student_learns_and_the_teacher_does_not(preset, task):
    model = tiny(preset, task=task, drop_path=0.0)
    teacher = copy.deepcopy(model).train()
    loss, size, log = step(task, model, teacher, sample())
    assert size == B and log["loss"] > 0
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())
    assert all(parameter.grad is None for parameter in teacher.parameters())


def test_the_teacher_sees_the_global_views_in_evaluation_mode(task, model):
    seen = []
    teacher = copy.deepcopy(model).train()
    teacher.register_forward_pre_hook(lambda module, args: seen.append((module.training, *args)))
    model.register_forward_pre_hook(lambda module, args, kw: seen.append(kw), with_kwargs=True)
    step(task, model, teacher, sample())
    (training, views), student = seen
    assert not training and len(student["images"]) == V * B
    assert torch.equal(views, student["images"][: 2 * B])


def test_the_centre_is_the_students_whatever_the_teachers_copy_holds(task, model):
    batch, teacher = sample(), copy.deepcopy(model)
    torch.nn.init.normal_(model.head.centre)
    other = copy.deepcopy(teacher)
    torch.nn.init.normal_(other.head.centre)
    losses = [step(task, copy.deepcopy(model), t, batch)[0] for t in (teacher, other)]
    assert torch.equal(*losses)
    before, output = model.head.centre.clone(), []
    teacher.register_forward_hook(lambda module, args, found: output.append(found))
    task.cfg.center_momentum = 0.8
    loss = step(task, model, teacher, batch)[0]
    assert_close(model.head.centre, 0.8 * before + 0.2 * output[0].mean(0))
    assert torch.equal(loss, losses[0]) and not teacher.head.centre.any()


def test_a_batch_that_is_ignored_leaves_the_centre(task, model):
    torch.nn.init.normal_(model.head.centre)
    before = model.head.centre.clone()
    loss = step(task, model, copy.deepcopy(model), sample(), ignore_grad=True)[0]
    assert loss == 0 and torch.equal(model.head.centre, before)


def test_the_prototypes_rest_in_the_first_updates(task, model):
    teacher, task.cfg.freeze_last_layer_updates = copy.deepcopy(model), 3
    step(task, model, teacher, sample(), 2)
    assert not model.head.prototypes.grad.any() and model.head.mlp[0].weight.grad.any()
    step(task, model, teacher, sample(), 3)
    assert model.head.prototypes.grad.any()


def test_validation_compares_two_views_and_changes_nothing(task, model):
    loss = DinoCriterion(DinoCriterionConfig(), task)
    before, batch = copy.deepcopy(model.state_dict()), sample(views=2)
    teacher = copy.deepcopy(model)
    first = task.valid_step(batch, model, loss, ema_model=teacher)
    assert torch.equal(first[0], task.valid_step(batch, model, loss, ema_model=teacher)[0])
    assert all(torch.equal(before[n], t) for n, t in model.state_dict().items())
    with pytest.raises(UserError, match="study probe"):
        task.valid_step(batch, model, loss)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_fairseqs_moving_average_holds_for_every_tensor_of_the_head(model, dtype):
    model = model.to(dtype)
    ema = EMA(model, EMAConfig(store_ema=True, ema_decay=0.9, ema_fp32=dtype != torch.float32))
    expected = {n: t.float().clone() for n, t in model.state_dict().items()}
    for _ in range(4):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        model.head.update_centre(torch.randn(B, K), 0.5)
        ema.step(model)
        for name, tensor in model.state_dict().items():
            expected[name] = 0.9 * expected[name] + 0.1 * tensor.float()
    for name, tensor in ema.get_model().state_dict().items():
        assert_close(tensor, expected[name].to(tensor.dtype))
    x = torch.randn(B, 12).to(dtype)
    assert_close(ema.get_model().head.directions().norm(dim=1), torch.ones(K))
    assert not torch.equal(ema.get_model().head(x), model.head(x))


def test_half_precision_trains(task, model):
    model = model.to(torch.bfloat16)
    loss, *_ = step(task, model, copy.deepcopy(model), sample())
    assert loss.dtype == torch.float32 and loss.isfinite()
    assert model.head.centre.dtype == torch.float32 and model.head.centre.any()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (dict(store_ema=False), "add --store-ema --ema-decay 0.996"),
        (dict(bf16=True), "--bf16 .* add --ema-fp32"),
        (dict(fp16=True), "--fp16 .* add --ema-fp32"),
        (dict(global_crops_scale=[0.5]), "--global-crops-scale"),
        (dict(local_crops_scale=[0.5, 0.2]), "--local-crops-scale"),
        (dict(local_crops_number=-1), "--local-crops-number"),
        (dict(center_momentum=1.0), "--center-momentum"),
        (dict(in_chans=2), "--in-chans"),
    ],
)
def test_impossible_flags_are_refused(flags, said):
    with pytest.raises(UserError, match=said):
        ResMLPImagePretrainingTask(config(**flags))


@pytest.mark.parametrize("flags", [dict(hflip=2.0), dict(color_jitter=-1.0)], ids=str)
def test_impossible_augmentation_is_refused(flags):
    (name,) = flags
    with pytest.raises(UserError, match=f"--{name.replace('_', '-')} .*{flags[name]}"):
        augment(**flags)


def test_it_is_no_classification():
    # So fairseq itself refuses --mixup and the others.
    assert not issubclass(ResMLPImagePretrainingTask, ResMLPImageClassificationTask)
    others = {"num_classes", "teacher_model", "scale", "aa", "reprob", "mixup", "cutmix"}
    assert not others & {flag.name for flag in fields(ResMLPImagePretrainingConfig)}


def test_another_loss_is_refused(task):
    with pytest.raises(UserError, match="needs --criterion dino, not cross_entropy"):
        task.build_criterion(SimpleNamespace(_name="cross_entropy"))
