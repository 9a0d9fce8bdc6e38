# The two demo models in plain PyTorch, for training: the parameters have the names, shapes and
# meaning of transformers' Qwen3MoeForCausalLM and Qwen3_5MoeForCausalLM, so that a state_dict goes
# from one to the other. What differs is speed: all experts are computed for every token by two
# large matrix products (with experts this small that beats sorting tokens by expert), and the
# DeltaNet solves its triangle instead of walking it. finish.py checks this file against
# transformers before anything is exported.
# SPDX-License-Identifier: Apache-2.0
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

CHUNK = 64  # tokens that the DeltaNet handles at once


@dataclass
class Config:
    name: str
    architecture: str  # as GGUF calls it
    n_vocab: int
    is_hybrid: bool
    n_layers: int = 4
    d_model: int = 256
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 64
    n_rot: int = 64
    rope_theta: float = 10000.0
    rope_sections: tuple = ()
    n_experts: int = 32
    n_experts_used: int = 4
    d_ff: int = 256
    d_ff_shared: int = 0
    n_ctx: int = 2048
    eps: float = 1e-6
    # Gated DeltaNet
    full_attention_interval: int = 1
    n_key_heads: int = 2
    n_value_heads: int = 4
    linear_head_dim: int = 64
    conv_kernel: int = 4

    def is_linear(self, layer):
        return (layer + 1) % self.full_attention_interval != 0


def config_of(name, n_vocab):
    if name == "attn":
        return Config("demo-attn", "qwen3moe", n_vocab, False)
    if name == "hybrid":
        return Config("demo-hybrid", "qwen35moe", n_vocab, True, n_rot=32, rope_sections=(6, 5, 5), d_ff_shared=256,
                      full_attention_interval=4)
    raise ValueError(f"no model '{name}'; expected attn or hybrid")


# ---- what 4-bit files do to a weight, felt in training ----------------------------------------

class Rounding:
    """Switch: while on, matrices act as if stored in blocks of 32 with 4 bits each."""

    on = False


def as_stored(w):
    """w, rounded as a 4-bit file would; gradients pass as if it were not."""
    if not Rounding.on:
        return w
    blocks = w.detach().float().reshape(*w.shape[:-1], -1, 32)
    low = blocks.amin(-1, keepdim=True).clamp(max=0)
    scale = ((blocks.amax(-1, keepdim=True) - low) / 15).clamp(min=1e-8)
    rounded = ((blocks - low) / scale).round().clamp(0, 15) * scale + low
    return w + (rounded.reshape(w.shape) - w.detach())


class Linear(nn.Linear):
    def __init__(self, n_in, n_out):
        super().__init__(n_in, n_out, bias=False)

    def forward(self, x):
        return F.linear(x, as_stored(self.weight))


class RMSNorm(nn.Module):
    """The hybrid's weights are around 0 and mean 1 + w."""

    def __init__(self, n, eps, one_plus):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(n) if one_plus else torch.ones(n))
        self.eps, self.one_plus = eps, one_plus

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * (1 + self.weight if self.one_plus else self.weight)).to(x.dtype)


# ---- attention --------------------------------------------------------------------------------

def rope_tables(config, n, device):
    """cos and sin, [n, n_rot / 2] each."""
    j = torch.arange(0, config.n_rot, 2, device=device, dtype=torch.float32)
    angles = torch.outer(torch.arange(n, device=device, dtype=torch.float32), config.rope_theta ** (-j / config.n_rot))
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """x: [batch, heads, n, head_dim]; pairs are (j, j + n_rot / 2), the rest stays."""
    half = cos.shape[-1]
    a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        gates = 2 if c.is_hybrid else 1  # the hybrid's q_proj gives each head a query and a gate
        self.q_proj = Linear(c.d_model, c.n_heads * c.head_dim * gates)
        self.k_proj = Linear(c.d_model, c.n_kv_heads * c.head_dim)
        self.v_proj = Linear(c.d_model, c.n_kv_heads * c.head_dim)
        self.o_proj = Linear(c.n_heads * c.head_dim, c.d_model)
        self.q_norm = RMSNorm(c.head_dim, c.eps, c.is_hybrid)
        self.k_norm = RMSNorm(c.head_dim, c.eps, c.is_hybrid)

    def forward(self, x, cos, sin):
        c, (batch, n, _) = self.c, x.shape
        q = self.q_proj(x).view(batch, n, c.n_heads, -1)
        gate = None
        if c.is_hybrid:
            q, gate = q.chunk(2, -1)
        k = self.k_proj(x).view(batch, n, c.n_kv_heads, c.head_dim)
        v = self.v_proj(x).view(batch, n, c.n_kv_heads, c.head_dim).transpose(1, 2)
        q = rotate(self.q_norm(q).transpose(1, 2).float(), cos, sin).to(v.dtype)
        k = rotate(self.k_norm(k).transpose(1, 2).float(), cos, sin).to(v.dtype)
        k, v = (t.repeat_interleave(c.n_heads // c.n_kv_heads, 1) for t in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, n, -1)
        if gate is not None:
            y = y * torch.sigmoid(gate.reshape(batch, n, -1))
        return self.o_proj(y)


# ---- gated DeltaNet ---------------------------------------------------------------------------

def delta_rule(q, k, v, g, beta):
    """The gated delta rule in chunks. q, k, v: [batch, n, heads, dim]; g (log of the decay) and
    beta: [batch, n, heads]; all f32, n a multiple of CHUNK. Returns [batch, n, heads, dim]."""
    batch, n, heads, dim = q.shape
    q, k, v = (t.transpose(1, 2).reshape(batch, heads, n // CHUNK, CHUNK, dim) for t in (q, k, v))
    g, beta = (t.transpose(1, 2).reshape(batch, heads, n // CHUNK, CHUNK) for t in (g, beta))
    q = q * dim**-0.5
    total = g.cumsum(-1)
    upper = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).triu(1)
    decay = (total[..., :, None] - total[..., None, :]).masked_fill(upper, float("-inf")).exp()
    k_beta = k * beta[..., None]
    triangle = ((k_beta @ k.transpose(-1, -2)) * decay).tril(-1)
    right = torch.cat([v * beta[..., None], k_beta * total.exp()[..., None]], -1)
    eye = torch.eye(CHUNK, device=q.device, dtype=q.dtype)
    u, w = torch.linalg.solve_triangular(triangle + eye, right, upper=False, unitriangular=True).chunk(2, -1)
    inside = (q @ k.transpose(-1, -2)) * decay
    q_in, last = q * total.exp()[..., None], total[..., -1:]
    k_out = (k * (last - total).exp()[..., None]).transpose(-1, -2)
    last = last.exp()[..., None]
    state = torch.zeros(batch, heads, dim, dim, device=q.device, dtype=q.dtype)
    outputs = []
    for i in range(n // CHUNK):
        new = u[:, :, i] - w[:, :, i] @ state
        outputs.append(q_in[:, :, i] @ state + inside[:, :, i] @ new)
        state = state * last[:, :, i] + k_out[:, :, i] @ new
    return torch.stack(outputs, 2).reshape(batch, heads, n, dim).transpose(1, 2)


class GatedDeltaNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.key_dim, self.value_dim = c.n_key_heads * c.linear_head_dim, c.n_value_heads * c.linear_head_dim
        channels = 2 * self.key_dim + self.value_dim
        self.conv1d = nn.Conv1d(channels, channels, c.conv_kernel, groups=channels, bias=False)  # holds the weight; see convolve
        self.dt_bias = nn.Parameter(torch.ones(c.n_value_heads))
        self.A_log = nn.Parameter(torch.empty(c.n_value_heads).uniform_(0.01, 16).log())
        self.norm = RMSNorm(c.linear_head_dim, c.eps, one_plus=False)
        self.out_proj = Linear(self.value_dim, c.d_model)
        self.in_proj_qkv = Linear(c.d_model, channels)
        self.in_proj_z = Linear(c.d_model, self.value_dim)
        self.in_proj_b = Linear(c.d_model, c.n_value_heads)
        self.in_proj_a = Linear(c.d_model, c.n_value_heads)

    def convolve(self, u):
        """Causal, channel by channel; the last tap is the newest. As shifted sums: no kernel to pick."""
        taps, n = self.conv1d.weight[:, 0], u.shape[1]
        padded = F.pad(u, (0, 0, self.c.conv_kernel - 1, 0))
        return F.silu(sum(padded[:, i:i + n] * taps[:, i] for i in range(self.c.conv_kernel)))

    def forward(self, x):
        c, (batch, n, _) = self.c, x.shape
        z = self.in_proj_z(x).view(batch, n, c.n_value_heads, -1)
        u, b, a = self.in_proj_qkv(x), self.in_proj_b(x), self.in_proj_a(x)
        with torch.autocast(x.device.type, enabled=False):
            y = self._mix(u.float(), b.float(), a.float())
        y = self.norm(y) * F.silu(z.float())
        return self.out_proj(y.reshape(batch, n, -1).to(x.dtype))

    def _mix(self, u, b, a):
        c, (batch, n, _) = self.c, u.shape
        q, k, v = self.convolve(u).split([self.key_dim, self.key_dim, self.value_dim], -1)
        q, k, v = (t.reshape(batch, n, -1, c.linear_head_dim) for t in (q, k, v))
        q, k = (t * torch.rsqrt((t * t).sum(-1, keepdim=True) + 1e-6) for t in (q, k))
        q, k = (t.repeat_interleave(c.n_value_heads // c.n_key_heads, 2) for t in (q, k))
        g = -self.A_log.float().exp() * F.softplus(a + self.dt_bias)
        beta, pad = b.sigmoid(), -n % CHUNK
        if pad:
            q, k, v = (F.pad(t, (0, 0, 0, 0, 0, pad)) for t in (q, k, v))
            g, beta = (F.pad(t, (0, 0, 0, pad)) for t in (g, beta))
        return delta_rule(q, k, v, g, beta)[:, :n]


# ---- experts ----------------------------------------------------------------------------------

class Router(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.weight = nn.Parameter(torch.empty(c.n_experts, c.d_model))

    def forward(self, x):
        """(probabilities of all, chosen experts, their weights), f32. x: [n, d_model]"""
        with torch.autocast(x.device.type, enabled=False):
            p = F.linear(x.float(), self.weight.float()).softmax(-1)
        weights, chosen = p.topk(self.c.n_experts_used, -1)
        return p, chosen, weights / weights.sum(-1, keepdim=True)


class Experts(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_up_proj = nn.Parameter(torch.empty(c.n_experts, 2 * c.d_ff, c.d_model))
        self.down_proj = nn.Parameter(torch.empty(c.n_experts, c.d_model, c.d_ff))

    def forward(self, x, weights):
        """x: [n, d_model]; weights: [n, n_experts], zero where an expert was not chosen."""
        n, n_experts = weights.shape
        gate, up = F.linear(x, as_stored(self.gate_up_proj).flatten(0, 1)).view(n, n_experts, -1).chunk(2, -1)
        act = F.silu(gate) * up * weights.to(gate.dtype)[..., None]
        return act.reshape(n, -1) @ as_stored(self.down_proj).transpose(1, 2).flatten(0, 1)


class SharedExpert(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = Linear(c.d_model, c.d_ff_shared)
        self.up_proj = Linear(c.d_model, c.d_ff_shared)
        self.down_proj = Linear(c.d_ff_shared, c.d_model)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Moe(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate, self.experts = Router(c), Experts(c)
        if c.d_ff_shared:
            self.shared_expert = SharedExpert(c)
            self.shared_expert_gate = nn.Linear(c.d_model, 1, bias=False)

    def forward(self, x, valid):
        """Output and the loss that evens out the use of experts: n_experts * sum_e share_e * p_e,
        which is 1 when all are used alike. valid: [n], 1 for tokens that are no padding."""
        p, chosen, weights = self.gate(x)
        all_weights = torch.zeros_like(p).scatter(1, chosen, weights)
        y = self.experts(x, all_weights)
        if hasattr(self, "shared_expert"):
            y = y + torch.sigmoid(self.shared_expert_gate(x)) * self.shared_expert(x)
        valid = valid[:, None] / valid.sum()
        share = ((all_weights > 0) * valid).sum(0) / chosen.shape[1]
        balance = p.shape[1] * (share.detach() * (p * valid).sum(0)).sum()
        return y, balance


# ---- the whole --------------------------------------------------------------------------------

class Layer(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        if c.is_linear(i):
            self.linear_attn = GatedDeltaNet(c)
        else:
            self.self_attn = Attention(c)
        self.mlp = Moe(c)
        self.input_layernorm = RMSNorm(c.d_model, c.eps, c.is_hybrid)
        self.post_attention_layernorm = RMSNorm(c.d_model, c.eps, c.is_hybrid)

    def forward(self, x, cos, sin, valid):
        a = self.input_layernorm(x)
        x = x + (self.linear_attn(a) if hasattr(self, "linear_attn") else self.self_attn(a, cos, sin))
        y, balance = self.mlp(self.post_attention_layernorm(x).flatten(0, 1), valid)
        return x + y.view_as(x), balance


class Trunk(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c.n_vocab, c.d_model)
        self.layers = nn.ModuleList(Layer(c, i) for i in range(c.n_layers))
        self.norm = RMSNorm(c.d_model, c.eps, c.is_hybrid)


class DemoModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = Trunk(config)
        self.lm_head = nn.Linear(config.d_model, config.n_vocab, bias=False)
        for name, p in self.named_parameters():
            if p.dim() > 1 and "conv1d" not in name:
                into_residual = name.endswith(("o_proj.weight", "out_proj.weight", "down_proj", "down_proj.weight"))
                nn.init.normal_(p, std=0.02 / (2 * config.n_layers) ** 0.5 if into_residual else 0.02)

    def hidden(self, ids, valid=None):
        """(normalised last hidden states [batch, n, d_model], mean balance loss). ids: [batch, n]"""
        if valid is None:
            valid = torch.ones(ids.numel(), device=ids.device)
        x = F.embedding(ids, as_stored(self.model.embed_tokens.weight))
        cos, sin = rope_tables(self.config, ids.shape[1], ids.device)
        balances = []
        for layer in self.model.layers:
            x, balance = layer(x, cos, sin, valid)
            balances.append(balance)
        return self.model.norm(x), torch.stack(balances).mean()

    def forward(self, ids):
        return self.lm_head(self.hidden(ids)[0])
