"""Networks that nobody drew: random branches, sums and concatenations of every layer, against
PyTorch as in test_torch.py. What they find is a tensor whose memory was given away too early.

Activations are smooth and dropout is left out, so that single and double precision agree. A
deep net loses a digit on the way, and what one normalisation does the next undoes, which leaves
gradients of rounding errors: so the bound is ten times wider, and 1e-5 at least."""
import random

from test_torch import SGD, check

NETS = 100
SMOOTH = ["", "tanh", "sigmoid", "gelu", "silu", "softplus"]


class Net:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.tensors, self.unused = [], {}, []
        start, shape = self.random.choice([
            ("input 6", (6,)), ("input 2x6x6", (2, 6, 6)), ("input sequence 4x3", (4, 3))])
        self.put(start, shape, None)
        for _ in range(self.random.randint(3, 12)):
            self.grow()
        self.end()

    def put(self, line, shape, source, others=()):
        name = f"n{len(self.tensors)}"
        self.lines.append(f"{name}: {line}" + (f" from {source}" if source else ""))
        self.tensors[name] = shape
        self.unused = [u for u in self.unused if u != source and u not in others] + [name]
        return name

    def grow(self):
        pick = self.random.choice
        source = self.unused[-1] if self.random.random() < 0.6 else pick(list(self.tensors))
        shape, act = self.tensors[source], pick(SMOOTH)
        alike = [n for n, s in self.tensors.items() if s == shape and n != source]
        choices = [("layernorm " + act, shape), ("batchnorm " + act, shape), (pick(SMOOTH[1:]), shape)]
        if len(shape) == 1:
            n = pick([3, 6])
            choices += [(f"dense {n} {act}", (n,)), ("softmax", shape), ("repeat 4", (4,) + shape)]
        if len(shape) == 2:
            n = pick([3, 5])
            cell = pick(["rnn", "lstm", "gru"])
            choices += [(f"dense {n} {act}", (4, n)), (f"{cell} {n}", (4, n)), (f"{cell} {n} last", (n,)),
                        (f"{cell} {n} layers 2 bidirectional", (4, 2 * n)), ("flatten", (4 * shape[1],))]
        if len(shape) == 3:
            n, kind = pick([2, 3]), pick(["max", "min", "average"])
            choices += [(f"conv {n} 3x3 pad same {act}", (n,) + shape[1:]), (f"global-pool {kind}", shape[:1])]
            if shape[1] > 1:
                choices += [(f"pool {kind} 2x2 {act}", (shape[0], shape[1] // 2, shape[2] // 2))]
        line, out = pick(choices)
        others = []
        if alike and self.random.random() < 0.4:
            others = self.random.sample(alike, min(len(alike), pick([1, 2])))
            axis = 1 if len(shape) == 2 else 0
            wide = shape[:axis] + (shape[axis] * (1 + len(others)),) + shape[axis + 1:]
            line, out = pick([("add", shape), ("concat", wide)])
            line += " " + " ".join(others) + " " + act
        self.put(line, out, source, others)

    def end(self):
        """Brings every loose end to a vector of three, and adds them up."""
        ends = []
        for name in list(self.unused):
            if len(self.tensors[name]) == 2:
                name = self.put("flatten", (self.tensors[name][0] * self.tensors[name][1],), name)
            ends.append(self.put("dense 3 tanh", (3,), name))
        if len(ends) > 1:
            self.put("add " + " ".join(ends[:-1]), (3,), ends[-1], ends)
        self.lines.append("loss mean-squared")

    def text(self):
        return "\n".join(self.lines) + f"\n{SGD}shards 1\n"


def cases():
    for seed in range(NETS):
        yield f"net {seed}", lambda s=seed: check(Net(s).text(), tolerance=1e-4, floor=0.1)
