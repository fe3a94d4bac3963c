import math
from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.logging import metrics
from torch import nn
from torch.testing import assert_close

from resmlp_mt.criterions.dino import (
    DinoCriterion,
    DinoCriterionConfig,
    cross_entropy,
    measure_spread,
)

G, V, B, C, K = 2, 5, 3, 6, 7
TASK = SimpleNamespace(target_dictionary=None)


class Student(nn.Module):
    """A model without a head: the loss knows outputs alone."""

    def __init__(self):
        super().__init__()
        self.score = nn.Linear(C, K)

    def forward(self, images):
        return self.score(images)


def criterion(**flags):
    return DinoCriterion(DinoCriterionConfig(**flags), TASK)


def batch(update_num=0):
    """Views as features, view by view, and a teacher's output on the first two."""
    return {
        "net_input": {"images": torch.randn(V * B, C)},
        "teacher_output": torch.rand(G, B, K) * 2 - 1,
        "centre": 0.1 * torch.randn(K),
        "update_num": update_num,
    }


def naive_loss(model, sample, student_temp, teacher_temp):
    """For each image, the mean over pairs of views, as a double loop. (B,)."""
    student = model(sample["net_input"]["images"]).view(V, B, K)
    centre, losses = sample["centre"], torch.zeros(B)
    for b in range(B):
        pairs = []
        for i in range(G):
            q = ((sample["teacher_output"][i, b] - centre) / teacher_temp).exp()
            q = q / q.sum()
            for j in range(V):
                p = (student[j, b] / student_temp).exp()
                p = p / p.sum()
                if i != j:
                    pairs.append(-sum(q[k] * p[k].log() for k in range(K)))
        losses[b] = sum(pairs) / len(pairs)
    return losses


@pytest.mark.parametrize("training", [True, False])
def test_the_loss_is_that_of_a_double_loop_over_views(training):
    model, sample = Student().train(training), batch()
    expected = naive_loss(model, sample, 0.2, 0.06)
    loss, size, log = criterion(student_temp=0.2, teacher_temp=0.06, warmup_teacher_temp=0.06)(
        model, sample
    )
    assert_close(loss, expected.sum())
    assert size == log["sample_size"] == B
    assert_close(log["loss"], expected.sum())


def test_the_loss_of_each_image_sums_to_that_of_the_batch():
    model, sample = Student().eval(), batch()
    each, *_ = criterion()(model, sample, reduce=False)
    assert_close(each, naive_loss(model, sample, 0.1, 0.04))
    assert_close(criterion()(model, sample)[0], each.sum())


def test_a_view_is_not_compared_with_itself():
    q, log_p = torch.rand(1, B, K).softmax(-1), torch.randn(2, B, K).log_softmax(-1)
    before = cross_entropy(q, log_p)
    assert torch.equal(cross_entropy(q, torch.stack([log_p[0] + 1, log_p[1]])), before)
    with pytest.raises(ValueError, match="one alone"):
        cross_entropy(q, log_p[:1])


def test_gradients_flow_to_the_student_alone():
    model, teacher, sample = Student().train(), Student(), batch()
    with torch.no_grad():
        sample["teacher_output"] = teacher(torch.randn(G * B, C)).view(G, B, K)
    criterion()(model, sample)[0].backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())
    assert all(parameter.grad is None for parameter in teacher.parameters())


def test_the_centre_takes_a_preference_for_one_prototype_from_the_teacher():
    # A teacher that answers all images with the same prototype has collapsed. When the centre has
    # become that answer, the student's target is the uniform distribution, without a favourite.
    model, sample = Student().train(), batch()
    sample["teacher_output"] = torch.zeros(G, B, K)
    sample["teacher_output"][..., 2] = 0.5
    entropies = []
    for centre in (torch.zeros(K), sample["teacher_output"].mean((0, 1))):
        log = criterion()(model, sample | {"centre": centre})[2]
        entropies.append(log["teacher_entropy"] / B)
    assert entropies[0] < 0.1
    assert_close(entropies[1], torch.tensor(math.log(K)))


def test_sharpening_takes_the_uniform_answer_from_the_teacher():
    # What centring leaves of differences between images, a low temperature makes large: the
    # entropy is far below that of the uniform distribution, to which centring alone would lead.
    output = 0.1 * torch.randn(G, B, K)
    cold = measure_spread((output / 0.01).log_softmax(-1))["teacher_entropy"] / B
    warm = measure_spread((output / 1.0).log_softmax(-1))["teacher_entropy"] / B
    assert cold < 0.5 * math.log(K) and warm > 0.99 * math.log(K)


def test_the_information_is_0_for_a_collapsed_teacher_and_log_b_for_the_best():
    same = torch.randn(G, 1, K).log_softmax(-1).expand(G, B, K)
    assert_close(measure_spread(same)["information"], torch.tensor(0.0), atol=1e-5, rtol=0)
    distinct = (1000 * torch.eye(K)[:B]).log_softmax(-1).expand(G, B, K)
    spread = measure_spread(distinct)
    assert_close(spread["information"] / B, torch.tensor(math.log(B)))
    assert_close(spread["teacher_entropy"], torch.tensor(0.0))


def test_the_teachers_temperature_warms_up_in_equal_steps():
    loss = criterion(warmup_teacher_temp=0.02, teacher_temp=0.06, warmup_teacher_temp_updates=4)
    assert [loss.teacher_temp(u) for u in (0, 1, 2, 4, 9)] == pytest.approx(
        [0.02, 0.03, 0.04, 0.06, 0.06]
    )
    assert criterion(warmup_teacher_temp=0.02).teacher_temp(0) == 0.04
    model, sample = Student().train(), batch(update_num=1)
    expected = naive_loss(model, sample, 0.1, 0.03).sum()
    assert_close(loss(model, sample)[0], expected)


def test_validation_is_at_the_final_temperature():
    model, sample = Student().eval(), batch()
    del sample["update_num"]
    loss = criterion(warmup_teacher_temp=0.02, warmup_teacher_temp_updates=4)
    assert_close(loss(model, sample)[0], naive_loss(model, sample, 0.1, 0.04).sum())


def test_the_log_has_means_per_image():
    model, loss = Student().eval(), criterion()
    samples = [batch(), batch()]
    logs = [loss(model, sample)[2] for sample in samples]
    with metrics.aggregate() as found:
        loss.reduce_metrics(logs)
    values = found.get_smoothed_values()
    losses = torch.cat([naive_loss(model, sample, 0.1, 0.04) for sample in samples])
    assert values["loss"] == pytest.approx(losses.mean().item(), abs=1e-4)
    assert values["kl"] == pytest.approx(values["loss"] - values["teacher_entropy"], abs=2e-4)
    assert 0 <= values["teacher_entropy"] <= math.log(K)
    assert 0 <= values["information"] <= math.log(B)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (dict(student_temp=0.0), "--student-temp must be positive"),
        (dict(teacher_temp=-1.0), "--teacher-temp must be positive"),
        (dict(warmup_teacher_temp=0.0), "--warmup-teacher-temp must be positive"),
    ],
)
def test_impossible_flags_are_refused(flags, said):
    with pytest.raises(ValueError, match=said):
        criterion(**flags)


def test_another_task_is_refused():
    assert CRITERION_REGISTRY["dino"] is DinoCriterion
    sample = {"net_input": {"images": torch.randn(B, C)}, "target": torch.zeros(B)}
    with pytest.raises(ValueError, match="image_pretraining alone"):
        criterion()(Student(), sample)
