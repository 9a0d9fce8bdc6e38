# The training model: its shortcuts compute what the plain formulas say. Needs torch 2; without it
# there is nothing to test.
#   python3 tools/demo_model/model_test.py
# SPDX-License-Identifier: Apache-2.0
import unittest

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

if torch is not None:
    from export_gguf import tensors, tiled
    from hidden_states import hidden_states
    from model import CHUNK, DemoModel, Experts, Rounding, Router, as_stored, config_of, delta_rule


def recurrence(q, k, v, g, beta):
    """The gated delta rule, token by token."""
    state = torch.zeros(q.shape[0], q.shape[2], q.shape[3], q.shape[3])
    out = []
    for t in range(q.shape[1]):
        state = state * g[:, t].exp()[..., None, None]
        delta = beta[:, t][..., None] * (v[:, t] - torch.einsum("bhij,bhi->bhj", state, k[:, t]))
        state = state + torch.einsum("bhi,bhj->bhij", k[:, t], delta)
        out.append(torch.einsum("bhij,bhi->bhj", state, q[:, t]) * q.shape[3] ** -0.5)
    return torch.stack(out, 1)


@unittest.skipIf(torch is None, "no torch here")
class TheModel(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def test_the_delta_rule_in_chunks_is_the_recurrence(self):
        q, k, v = (torch.randn(2, 2 * CHUNK, 3, 16) for _ in range(3))
        k = F.normalize(k, dim=-1)
        g, beta = -torch.rand(2, 2 * CHUNK, 3), torch.rand(2, 2 * CHUNK, 3)
        torch.testing.assert_close(delta_rule(q, k, v, g, beta), recurrence(q, k, v, g, beta), atol=1e-5, rtol=1e-4)

    def test_all_experts_at_once_give_the_sum_over_the_chosen(self):
        c = config_of("attn", 64)
        router, experts = Router(c), Experts(c)
        for p in (router.weight, experts.gate_up_proj, experts.down_proj):
            torch.nn.init.normal_(p, std=0.1)
        x = torch.randn(5, c.d_model)
        p, chosen, weights = router(x)
        got = experts(x, torch.zeros_like(p).scatter(1, chosen, weights))
        for token in range(5):
            expected = torch.zeros(c.d_model)
            for e, w in zip(chosen[token].tolist(), weights[token]):
                gate, up = (experts.gate_up_proj[e] @ x[token]).chunk(2)
                expected = expected + w * (experts.down_proj[e] @ (F.silu(gate) * up))
            torch.testing.assert_close(got[token], expected, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(weights.sum(-1), torch.ones(5))

    def test_rounding_leaves_sixteen_values_per_block_and_passes_gradients(self):
        w = torch.randn(4, 64, requires_grad=True)
        Rounding.on = True
        rounded = as_stored(w)
        Rounding.on = False
        self.assertLessEqual(max(len(set(b.tolist())) for b in rounded.detach().reshape(-1, 32)), 16 + 2)  # + rounding of the sum
        self.assertFalse(torch.equal(rounded, w))
        rounded.sum().backward()
        torch.testing.assert_close(w.grad, torch.ones(4, 64))
        self.assertIs(as_stored(w), w)

    def test_value_heads_go_from_grouped_to_tiled(self):
        c = config_of("hybrid", 64)
        heads = torch.arange(c.n_value_heads)
        self.assertEqual(tiled(heads, c, 0, 1).tolist(), [0, 2, 1, 3])

    def test_every_weight_is_exported_once_and_norms_of_the_hybrid_hold_one_plus_w(self):
        for name in ("attn", "hybrid"):
            c = config_of(name, 64)
            weights = DemoModel(c).state_dict()
            exported = {n: t for n, t, _ in tensors(c, weights)}
            self.assertEqual(sum(t.numel() for t in exported.values()), sum(t.numel() for t in weights.values()))
            torch.testing.assert_close(exported["output_norm.weight"], torch.ones(c.d_model))

    def test_later_tokens_do_not_change_earlier_ones_and_hidden_states_are_those_of_the_layers(self):
        for name in ("attn", "hybrid"):
            model = DemoModel(config_of(name, 64)).eval()
            ids = torch.randint(0, 64, (1, 70))
            with torch.no_grad():
                torch.testing.assert_close(model(ids)[:, :40], model(ids[:, :40]), atol=1e-5, rtol=1e-4)
                last = hidden_states(model, ids, [0, 3])
                torch.testing.assert_close(model.lm_head(model.model.norm(last[1])), model(ids))
            self.assertEqual(tuple(last.shape), (2, 1, 70, 256))


if __name__ == "__main__":
    unittest.main()
