"""Models in float64: assert_close's defaults (1e-7) leave room for the order of sums only."""

import math
import shutil

import pytest
import torch
from fairseq.data.data_utils import collate_tokens
from torch.testing import assert_close

from resmlp_mt.models.parts import SEQUENCE_MIXERS, SEQUENCE_NORMS
from resmlp_mt.models.presets import PRESETS
from resmlp_mt.models.translation.config import COUNTS
from resmlp_mt.nn.norm import Affine, LayerScale

PAD, EOS, S, T = 1, 2, 7, 5
LENGTHS = [(4, 3), (7, 2), (1, 5)]  # source and target of three sentences

every_preset = pytest.mark.parametrize("preset", PRESETS)
POSITIONS = [
    dict(no_token_positional_embeddings=True),
    dict(no_token_positional_embeddings=False),
    dict(no_token_positional_embeddings=False, encoder_learned_pos=True),
    dict(no_token_positional_embeddings=False, decoder_learned_pos=True),
]
POSITION_IDS = ["none", "sinusoidal", "encoder-learned", "decoder-learned"]


def words(length: int) -> torch.Tensor:
    return torch.randint(4, 17, (length,))


def sentences() -> tuple[list, list]:
    """Sources, that end in EOS, and targets, that start with it."""
    sources = [torch.cat([words(s - 1), torch.tensor([EOS])]) for s, _ in LENGTHS]
    return sources, [torch.cat([torch.tensor([EOS]), words(t - 1)]) for _, t in LENGTHS]


def pad(rows: list, left: bool = False) -> torch.Tensor:
    return collate_tokens(rows, PAD, left_pad=left)


def logits(model, source, target) -> torch.Tensor:
    return model(source, None, target)[0]


# Padding and length


@every_preset
def test_a_sentence_scores_the_same_alone_and_padded_on_either_side(preset, build_model):
    model, (sources, targets) = build_model(preset), sentences()
    left, right = (logits(model, pad(sources, left), pad(targets)) for left in (True, False))
    for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = logits(model, source[None], target[None])[0]
        assert_close(left[i, : len(target)], alone)
        assert_close(right[i, : len(target)], alone)


@pytest.mark.parametrize("left", [True, False], ids=["left-padded", "right-padded"])
def test_the_memory_is_padded_on_the_right_whatever_the_source(left, build_model):
    sources, _ = sentences()
    (mask,) = build_model().encoder(pad(sources, left))["encoder_padding_mask"]
    assert mask.tolist() == [[i >= len(source) for i in range(S)] for source in sources]


@every_preset
def test_no_score_depends_on_later_target_words(preset, build_model):
    model, source, target = build_model(preset), words(S)[None], words(T)[None]
    full = logits(model, source, target)
    for t in range(1, T):
        changed = torch.cat([target[:, :t], (target[:, t:] - 3) % 13 + 4], dim=1)
        assert torch.equal(logits(model, source, changed)[:, :t], full[:, :t])


@pytest.mark.parametrize("flags", POSITIONS, ids=POSITION_IDS)
def test_texts_of_exactly_n_positions_fit_and_longer_ones_are_refused(flags, build_model):
    model = build_model(**flags)
    longest_source, longest_target = model.max_positions()
    assert (longest_source, longest_target) == (11, 9)
    source, target = words(11)[None], words(9)[None]
    assert logits(model, source, target).shape == (1, 9, 19)
    with pytest.raises(ValueError, match=r"\b12\b.*\b11\b"):
        logits(model, words(12)[None], target)
    with pytest.raises(ValueError, match=r"\b10\b.*\b9\b"):
        logits(model, source, words(10)[None])


@pytest.mark.parametrize("mixer", ["toeplitz", "gated-toeplitz"])
def test_toeplitz_models_take_longer_texts_unless_positions_are_learned(mixer, build_model):
    source, target = words(25)[None], words(23)[None]
    model = build_model(token_mixer=mixer)
    assert logits(model, source, target).isfinite().all()
    model = build_model(token_mixer=mixer, encoder_learned_pos=True, decoder_learned_pos=True)
    with pytest.raises(ValueError, match=r"\b25\b.*\b11\b"):
        logits(model, source, target)
    with pytest.raises(ValueError, match=r"\b23\b.*\b9\b"):
        logits(model, source[:, :11], target)


def test_a_toeplitz_model_loads_into_one_for_longer_texts(build_model):
    trained = build_model("resmlp_plus_tiny")
    longer = build_model("resmlp_plus_tiny", max_source_positions=30, max_target_positions=40)
    longer.load_state_dict(trained.state_dict())
    source, target = words(11)[None], words(9)[None]
    assert_close(logits(longer, source, target), logits(trained, source, target))
    assert longer.max_positions() == (30, 40)


# Decoding in steps


def check_steps(model, need_attn: bool = False) -> None:
    """Decode step by step while hypotheses change places at random, within and across sentences."""
    model.make_generation_fast_(need_attn=need_attn)
    (sources, _), B = sentences(), len(LENGTHS)
    source, history, state = pad(sources, left=True), torch.full((B, 1), EOS), {}
    encoder_out = model.encoder(source)
    for _ in range(T):
        step, extra = model.decoder(history, encoder_out, incremental_state=state)
        full, full_extra = model(source, None, history)
        assert_close(step, full[:, -1:])
        if need_attn:
            assert_close(extra["attn"][0], full_extra["attn"][0][:, -1:])
        order = torch.randint(B, (B,))
        # As fairseq's generator does it.
        model.decoder.reorder_incremental_state_scripting(state, order)
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
        source, history = source[order], torch.cat([history[order], words(B)[:, None]], dim=1)


@every_preset
def test_steps_under_random_reordering_equal_the_full_pass(preset, build_model):
    check_steps(build_model(preset))


@pytest.mark.parametrize("flags", POSITIONS, ids=POSITION_IDS)
def test_steps_equal_the_full_pass_whatever_the_positions(flags, build_model):
    check_steps(build_model(**flags))


def test_beams_share_the_memory_of_their_sentence(build_model):
    model, (sources, _), K = build_model(), sentences(), 4
    model.make_generation_fast_(need_attn=True)
    source, state = pad(sources), {}
    encoder_out = model.encoder(source)
    order = torch.arange(3).repeat_interleave(K)  # as fairseq's generator begins
    history = torch.full((3 * K, 1), EOS)
    for kept in ([0, 1, 2], [0, 1, 2], [2, 0], [0]):  # sentences that go on after each step
        encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
        source = source[order]
        step, extra = model.decoder(history, encoder_out, incremental_state=state)
        full, full_extra = model(source, None, history)
        assert_close(step, full[:, -1:])
        assert_close(extra["attn"][0], full_extra["attn"][0][:, -1:])
        sizes = {len(t) for block in state["blocks"] for t in block["attend"].values()}
        assert sizes == {len(encoder_out["encoder_out"][0])} == {len(order) // K}
        order = (torch.tensor(kept)[:, None] * K + torch.randint(K, (len(kept), K))).flatten()
        model.decoder.reorder_incremental_state_scripting(state, order)
        words_ = torch.randint(4, 17, (len(order), 1))
        history = torch.cat([history[order], words_], dim=1)


def test_steps_continue_from_a_given_prefix(build_model):
    model, source, target, state = build_model(), words(S)[None], words(T)[None], {}
    encoder_out, full = model.encoder(source), logits(model, source, target)
    prefix = model.decoder(target[:, :3], encoder_out, incremental_state=state)[0]
    assert_close(prefix, full[:, :3])
    rest = model.decoder(target, encoder_out, incremental_state=state)[0]
    assert_close(rest, full[:, 3:])


# Attention to show


@pytest.mark.parametrize("left", [True, False], ids=["left-padded", "right-padded"])
def test_need_attn_shows_attention_in_the_columns_of_the_source_given(left, build_model):
    model, (sources, targets) = build_model(), sentences()
    source, target = pad(sources, left), pad(targets)
    plain = logits(model, source, target)
    model.make_generation_fast_(need_attn=True)
    scores, extra = model(source, None, target)
    attn = extra["attn"][0]
    assert torch.equal(scores, plain)
    assert attn.shape == (3, 5, S)
    assert not attn.transpose(1, 2)[source.eq(PAD)].any()
    assert_close(attn.sum(-1), torch.ones(3, 5))
    for i, row in enumerate(sources):
        alone = model(row[None], None, target[i : i + 1])[1]["attn"][0][0]
        assert_close(attn[i, :, source[i].ne(PAD)], alone)


def test_need_attn_in_steps_under_random_reordering_equals_the_full_pass(build_model):
    check_steps(build_model(), need_attn=True)


def test_no_attention_is_shown_unless_asked_for(build_model):
    model, source, target = build_model(), words(S)[None], words(T)[None]
    assert model(source, None, target)[1]["attn"] == [None]
    model.make_generation_fast_()
    assert model(source, None, target)[1]["attn"] == [None]


# Parameters


@every_preset
@pytest.mark.parametrize("joined", [False, True], ids=["separate", "joined"])
def test_every_parameter_gets_a_gradient(preset, joined, build_model, task):
    flags = dict(share_all_embeddings=True, decoder_embed_dim=16) if joined else {}
    learned = dict(encoder_learned_pos=True, decoder_learned_pos=True)
    model = build_model(preset, task(joined), **flags, **learned).train()
    sources, targets = sentences()
    y = logits(model, pad(sources), pad(targets))
    y.backward(torch.randn_like(y))
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        # The same added to all keys changes no softmax.
        assert parameter.grad.any() or name.endswith("key.bias"), name


SHARING = {
    "none": {},
    "decoder": dict(share_decoder_input_output_embed=True),
    "all": dict(share_all_embeddings=True, decoder_embed_dim=16),
}


@pytest.mark.parametrize("sharing", SHARING)
def test_embeddings_are_shared_as_the_flags_say_also_after_loading(sharing, build_model, task):
    def build():
        return build_model(task=task(joined=sharing == "all"), **SHARING[sharing])

    saved, loaded = build(), build()
    source, target = words(S)[None], words(T)[None]
    assert not torch.equal(logits(loaded, source, target), logits(saved, source, target))
    loaded.load_state_dict(saved.state_dict())
    assert torch.equal(logits(loaded, source, target), logits(saved, source, target))
    for model in saved, loaded:
        tokens, output = model.decoder.embed.tokens.weight, model.decoder.output.weight
        assert (model.encoder.embed.tokens.weight is tokens) == (sharing == "all")
        assert (output is tokens) == (sharing != "none")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["half", "bfloat16"])
@every_preset
def test_a_state_saved_in_float32_loads_into_half_precision(preset, dtype, build_model):
    saved, loaded = build_model(preset).float(), build_model(preset).to(dtype)
    loaded.load_state_dict(saved.state_dict())
    for ours, theirs in zip(loaded.parameters(), saved.parameters(), strict=True):
        assert torch.equal(ours, theirs.to(dtype))
    source, target = words(S)[None], words(T)[None]
    full, half = (logits(model, source, target) for model in (saved, loaded))
    assert half.dtype == dtype
    # Some twenty roundings in a row, each by eps / 2 at most, add up as a random walk: 2 eps or so.
    error = (half.float() - full).norm() / full.norm()
    assert error < 5 * torch.finfo(dtype).eps


def test_a_state_of_other_dictionaries_is_refused(build_model, task):
    saved = build_model(task=task(joined=True)).state_dict()
    with pytest.raises(ValueError, match="17 entries, the decoder's has 19"):
        build_model().load_state_dict(saved)


# Flags


@pytest.mark.parametrize(
    "flags, task_flags, message",
    [
        (dict(share_all_embeddings=True, decoder_embed_dim=16), {}, "joined dictionary"),
        (dict(share_all_embeddings=True), dict(joined=True), "not 16 and 24"),
        ({}, dict(left_pad_target=True), "--left-pad-target"),
        (dict(mixing_heads=3), {}, "3 mixing heads do not divide 16"),
        (dict(mixing_init_std=-1), {}, "--mixing-init-std must be at least 0, not -1"),
        (dict(mixing_init_std=math.nan), {}, "--mixing-init-std must be at least 0, not nan"),
        (dict(decoder_attention_heads=5), {}, "5 attention heads do not divide 24"),
    ],
)
def test_flags_that_contradict_are_refused(flags, task_flags, message, build_model, task):
    with pytest.raises(ValueError, match=message):
        build_model(task=task(**task_flags), **flags)


def test_sizes_reach_their_side(build_model):
    model = build_model()
    assert (len(model.encoder.blocks), len(model.decoder.blocks)) == (2, 3)
    for side, dim, hidden in (model.encoder, 16, 20), (model.decoder, 24, 28):
        assert {block.mix_channels.fc1.weight.shape for block in side.blocks} == {(hidden, dim)}


@pytest.mark.parametrize("name", SEQUENCE_MIXERS)
def test_token_mixer_and_its_flags_reach_every_block(name, build_model):
    lengths = dict(max_source_positions=300, max_target_positions=290)
    model = build_model(
        fresh=True, token_mixer=name, mixing_heads=4, mixing_init_std=0.05, **lengths
    )
    toeplitz, gated = "toeplitz" in name, name.startswith(("gated", "projected"))
    for side, positions, distances in (model.encoder, 300, 599), (model.decoder, 290, 290):
        mixers = [block.mix_tokens for block in side.blocks]
        assert {hasattr(mixer, "gate") for mixer in mixers} == {gated}
        assert {hasattr(mixer, "out") for mixer in mixers} == {name.startswith("projected")}
        matrices = [(mixer.mix if gated else mixer).matrix for mixer in mixers]
        shape = (4, distances) if toeplitz else (4, positions, positions)
        assert {matrix.weight.shape for matrix in matrices} == {shape}
        weights = torch.cat([matrix.weight.flatten() for matrix in matrices])
        # A normal cut at two deviations has 0.88 of the deviation, within 3 % for 3480 samples.
        assert weights.std().item() == pytest.approx(0.05, rel=0.15)


@pytest.mark.parametrize("norm", SEQUENCE_NORMS)
def test_norm_and_layer_scale_init_reach_every_sublayer(norm, build_model):
    model = build_model(fresh=True, norm=norm, layer_scale_init=0.3)
    sublayers = 2 * 2 + 3 * 3
    modules = list(model.modules())
    for name, norm_class in {"affine": Affine, "layer": torch.nn.LayerNorm}.items():
        count = sum(isinstance(m, norm_class) for m in modules)
        assert count == (sublayers + 2 if name == norm else 0)
    scales = torch.cat([m.gamma for m in modules if isinstance(m, LayerScale)])
    assert_close(scales, torch.full((2 * 2 * 16 + 3 * 3 * 24,), 0.3))


def test_dropout_flags_reach_every_block(build_model):
    # What each place does with its rate: tests/nn/test_blocks.py.
    model = build_model(dropout=0.5, attention_dropout=0.25, activation_dropout=0.125)
    blocks = [*model.encoder.blocks, *model.decoder.blocks]
    assert {block.drop.p for block in blocks} == {0.5}
    assert {block.mix_channels.drop.p for block in blocks} == {0.125}
    assert {block.attend.dropout for block in model.decoder.blocks} == {0.25}


@pytest.mark.parametrize("flag", ["dropout", "attention_dropout", "activation_dropout"])
def test_dropout_changes_scores_in_training_only(flag, build_model):
    model, source, target = build_model(**{flag: 0.5}), words(S)[None], words(T)[None]
    once, twice = (logits(model.train(), source, target) for _ in range(2))
    assert not torch.equal(once, twice)
    once, twice = (logits(model.eval(), source, target) for _ in range(2))
    assert torch.equal(once, twice)


def test_dropout_acts_on_the_embeddings(build_model):
    embed = build_model(dropout=1.0).train().encoder.embed
    assert not embed(words(S)[None]).any()


@pytest.mark.parametrize("plain", [False, True], ids=["scaled", "no-scale-embedding"])
def test_embeddings_are_scaled_by_the_root_of_their_width_unless_told_not_to(plain, build_model):
    model = build_model(no_scale_embedding=plain, no_token_positional_embeddings=True)
    tokens = words(S)[None]
    for side, width in (model.encoder, 16), (model.decoder, 24):
        expected = side.embed.tokens.weight[tokens] * (1 if plain else width**0.5)
        assert_close(side.embed(tokens), expected)


def positions_added(side) -> torch.Tensor:
    """The vectors that are added to one word, by position. (S, C)."""
    tokens = torch.full((1, S), 5)
    return (side.embed(tokens) - side.embed.scale * side.embed.tokens(tokens))[0]


@pytest.mark.parametrize("flags", POSITIONS, ids=POSITION_IDS)
def test_positions_are_none_sinusoidal_or_learned_as_the_flags_say(flags, build_model):
    model = build_model(**flags)
    for name, side in ("encoder", model.encoder), ("decoder", model.decoder):
        added = positions_added(side)
        saved = [key for key in side.state_dict() if "positions" in key]
        if flags["no_token_positional_embeddings"]:
            assert not added.any()
            assert not saved
        elif flags.get(f"{name}_learned_pos"):
            table = side.state_dict()["embed.positions.weight"]
            assert_close(added, table[PAD + 1 : PAD + 1 + S])
        else:
            assert not saved
            # Sinusoids: the product of two of them knows their distance alone.
            products = added @ added.t()
            for distance in range(S):
                diagonal = products.diagonal(distance)
                assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=1e-5, atol=1e-5)
            assert len(added.round(decimals=3).unique(dim=0)) == S


def test_the_output_layer_scores_the_features(build_model):
    model, source, target = build_model(), words(S)[None], words(T)[None]
    features = model.decoder(target, model.encoder(source), features_only=True)[0]
    assert_close(features @ model.decoder.output.weight.t(), logits(model, source, target))
    lengths = torch.tensor([S])
    assert_close(model.extract_features(source, lengths, target)[0], features)  # fairseq's name


# Less memory, and compilation


def test_activations_that_are_computed_again_change_no_gradient(build_model, kept_by):
    plain, frugal = (
        build_model("resmlp_plus_tiny", dropout=0.3, checkpoint_activations=again)
        for again in (False, True)
    )
    frugal.load_state_dict(plain.state_dict())
    sources, targets = map(pad, sentences())
    kept = [kept_by(model, lambda m: logits(m, sources, targets)) for model in (plain, frugal)]
    assert kept[1] < kept[0] / 2
    for ours, theirs in zip(frugal.parameters(), plain.parameters(), strict=True):
        assert torch.equal(ours.grad, theirs.grad)
    assert torch.equal(
        logits(frugal.eval(), sources, targets), logits(plain.eval(), sources, targets)
    )


@pytest.mark.skipif(shutil.which("c++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("again", [False, True])
def test_a_compiled_training_has_the_outputs_and_gradients_of_the_plain_one(build_model, again):
    sizes = dict(decoder_attention_heads=3, encoder_layers=0, decoder_layers=1, dropout=0.0)
    plain = build_model(**sizes)
    compiled = build_model(torch_compile=True, checkpoint_activations=again, **sizes)
    compiled.load_state_dict(plain.state_dict())
    compiled.train().set_num_updates(0)
    for count in (3, 2):  # batches and lengths vary
        sources, targets = (pad(rows[:count]) for rows in sentences())
        for model in (plain, compiled):
            model.zero_grad()
            logits(model, sources, targets).square().mean().backward()
        for (name, ours), theirs in zip(
            compiled.named_parameters(), plain.parameters(), strict=True
        ):
            assert_close(ours.grad, theirs.grad, msg=name)
    assert compiled.state_dict().keys() == plain.state_dict().keys()


def test_only_trainings_compile(build_model):
    model = build_model(torch_compile=True)
    sources, targets = map(pad, sentences())
    expected = build_model()
    expected.load_state_dict(model.state_dict())
    assert_close(logits(model, sources, targets), logits(expected, sources, targets))
    blocks = [*model.encoder.blocks, *model.decoder.blocks]
    assert not any(block._compiled_call_impl for block in blocks)
    model.set_num_updates(0)
    assert all(block._compiled_call_impl for block in blocks)


# Sizes at their limits


@pytest.mark.parametrize("flag", COUNTS)
def test_no_size_may_be_0(flag, build_model):
    with pytest.raises(ValueError, match=f"--{flag.replace('_', '-')} must be at least 1, not 0"):
        build_model(**{flag: 0})


@every_preset
@pytest.mark.parametrize("positions", [1, 2])
def test_a_model_of_one_or_two_positions_works(preset, positions, build_model):
    model = build_model(preset, max_source_positions=positions, max_target_positions=positions)
    source, target = words(positions)[None], words(positions)[None]
    full, state = logits(model, source, target), {}
    memory = model.encoder(source)
    for t in range(1, positions + 1):
        step, _ = model.decoder(target[:, :t], memory, state)
        assert_close(step[:, -1], full[:, t - 1])
    full.sum().backward()


def test_weights_that_were_apart_are_not_loaded_where_they_are_shared(build_model, task):
    joined = dict(task=task(joined=True), decoder_embed_dim=16, encoder_embed_dim=16)
    apart, shared = (build_model(share_all_embeddings=x, **joined) for x in (False, True))
    with pytest.raises(ValueError, match="apart, which are one here: leave out --share-all"):
        shared.load_state_dict(apart.state_dict())
    apart.load_state_dict(shared.state_dict())
    source, target = words(S)[None], words(T)[None]
    assert_close(logits(apart, source, target), logits(shared, source, target))
