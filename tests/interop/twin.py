"""The model language a second time, in PyTorch and double precision: what Shoal must agree with.

A Twin reads a model text and holds its parameters under Shoal's names, in Shoal's shapes.
It knows nothing of Shoal's code, only of what the language promises."""
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import _VF  # the cells of torch.nn.RNN, LSTM and GRU, which take weights as arguments

ACTIVATIONS = {
    "identity": lambda x: x,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "relu": F.relu,
    "leaky-relu": lambda x: F.leaky_relu(x, 0.01),
    "elu": F.elu,
    "gelu": F.gelu,
    "silu": F.silu,
    "softplus": F.softplus,
    "softmax": lambda x: F.softmax(x, -1),
}
SETTINGS = "loss optimizer schedule warmup batch epochs seed shards l2 clip early-stop class-weights".split()
GATES = {"rnn": 1, "lstm": 4, "gru": 3}


def single(text):
    """A setting as Shoal holds it: rounded to single precision."""
    return float(np.float32(text))


def pair(text):
    sizes = [int(size) for size in text.split("x")]
    return (sizes[0], sizes[-1])


class Layer:
    def __init__(self, op, words):
        self.op, self.inputs, self.activation = op, [], None
        self.words, self.options = [], {}
        words = list(words)
        while words:
            word = words.pop(0)
            if word in ACTIVATIONS:
                self.activation = word
            elif word in ("stride", "pad", "layers", "from"):
                self.options[word] = words.pop(0)
            elif word == "init":
                if words.pop(0) in ("normal", "uniform"):
                    words.pop(0)
            elif word in ("no-bias", "bidirectional", "last", "batch"):
                self.options[word] = True
            else:
                self.words.append(word)


class Twin:
    def __init__(self, text, random):
        self.random = random
        self.layers, self.settings, self.parameters, self.statistics = [], {}, {}, {}
        self.carry, self.states = False, {}
        names, counts, shape = {}, {}, None
        shapes = []
        for line in text.splitlines():
            words = line.split("#")[0].split()
            if not words:
                continue
            name = words.pop(0)[:-1] if words[0].endswith(":") else None
            if words[0] in SETTINGS:
                self.settings[words[0]] = words[1:]
                continue
            op = words[0] if words[0] not in ACTIVATIONS else "activation"
            layer = Layer(op, words[1:] if op != "activation" else words)
            index = len(self.layers)
            if op == "input":
                layer.name = "input"
                shape = self.input_shape(layer.words)
            else:
                above = names[layer.options["from"]] if "from" in layer.options else index - 1
                layer.inputs = [above]
                if op in ("add", "concat"):
                    layer.inputs += [names[word] for word in layer.words]
                if not name:
                    counts[op] = counts.get(op, 0) + 1
                layer.name = name or op + str(counts[op])
                layer.shapes = [shapes[i] for i in layer.inputs]
                shape = self.make(layer)
            if name:
                names[name] = index
            self.layers.append(layer)
            shapes.append(shape)
        self.shape = shape
        loss = self.settings["loss"]
        self.loss_kind = loss[0]
        last = self.layers[-1]
        self.final = {"cross-entropy": "softmax", "binary-cross-entropy": "sigmoid"}.get(self.loss_kind, "identity")
        if last.activation == self.final:
            last.activation = None  # the loss takes what comes before it

    # ---- what a line makes --------------------------------------------------------------

    def input_shape(self, words):
        if words[0] == "tokens":
            self.carry = "carry" in words
            self.tokens = True
            return (int(words[1]),)
        self.tokens = False
        if words[0] == "sequence":
            return pair(words[1])
        return tuple(int(size) for size in words[0].split("x"))

    def parameter(self, name, shape, scale, around=0.0):
        value = (around + scale * self.random.standard_normal(shape)).astype(np.float32)
        self.parameters[name] = torch.tensor(value, dtype=torch.float64, requires_grad=True)

    def statistic(self, name, values):
        self.statistics[name] = torch.tensor(values.astype(np.float32), dtype=torch.float64)

    def make(self, layer):
        """Makes the layer's parameters and returns the shape of its output, without the batch."""
        shape, name, words, options = layer.shapes[0], layer.name, layer.words, layer.options
        if layer.op == "dense":
            before = (math.prod(shape),) if len(shape) == 3 else shape
            out = int(words[0])
            self.parameter(name + ".weight", (before[-1], out), 1 / math.sqrt(before[-1]))
            if "no-bias" not in options:
                self.parameter(name + ".bias", (out,), 0.3)
            return before[:-1] + (out,)
        if layer.op == "conv":
            out, layer.kernel = int(words[0]), pair(words[1])
            layer.stride = pair(options.get("stride", "1"))
            pad = options.get("pad", "0")
            layer.pad = (layer.kernel[0] // 2, layer.kernel[1] // 2) if pad == "same" else pair(pad)
            fan = shape[0] * layer.kernel[0] * layer.kernel[1]
            self.parameter(name + ".weight", (out, shape[0]) + layer.kernel, 1 / math.sqrt(fan))
            if "no-bias" not in options:
                self.parameter(name + ".bias", (out,), 0.3)
            return (out,) + self.moved(layer, shape)
        if layer.op == "pool":
            layer.kernel = pair(words[1])
            layer.stride = pair(options["stride"]) if "stride" in options else layer.kernel
            layer.pad = pair(options.get("pad", "0"))
            return (shape[0],) + self.moved(layer, shape)
        if layer.op == "global-pool":
            return (shape[0],)
        if layer.op == "flatten":
            return (math.prod(shape),)
        if layer.op == "reshape":
            return pair(words[1]) if words[0] == "sequence" else tuple(int(size) for size in words[0].split("x"))
        if layer.op == "embed":
            self.parameter(name + ".table", (int(words[0]), int(words[1])), 1)
            return shape + (int(words[1]),)
        if layer.op == "lookup":
            rows, width, columns = int(words[0]), int(words[1]), int(words[3])
            self.parameter(name + ".table", (rows, width), 1)
            return (shape[0] - columns + columns * width,)
        if layer.op in GATES:
            return self.make_cells(layer, shape)
        if layer.op == "repeat":
            return (int(words[0]),) + shape
        if layer.op in ("batchnorm", "layernorm"):
            channels = shape if layer.op == "layernorm" and len(shape) == 3 else shape[:1]
            channels = shape[-1:] if len(shape) == 2 else channels
            self.parameter(name + ".gamma", channels, 0.3, 1)
            self.parameter(name + ".beta", channels, 0.3)
            if layer.op == "batchnorm":
                self.statistic(name + ".mean", 0.3 * self.random.standard_normal(channels))
                self.statistic(name + ".variance", 0.5 + self.random.random(channels))
            return shape
        if layer.op == "concat":
            axis = 1 if len(shape) == 2 else 0
            total = sum(other[axis] for other in layer.shapes)
            return shape[:axis] + (total,) + shape[axis + 1:]
        return shape

    @staticmethod
    def moved(layer, shape):
        return tuple((shape[1 + i] + 2 * layer.pad[i] - layer.kernel[i]) // layer.stride[i] + 1 for i in (0, 1))

    def make_cells(self, layer, shape):
        units, stack = int(layer.words[0]), int(layer.options.get("layers", 1))
        gates = GATES[layer.op]
        directions = ["", ".reverse"] if "bidirectional" in layer.options else [""]
        size = shape[-1]
        layer.cells = []
        for k in range(stack):
            part = f".{k + 1}" if stack > 1 else ""
            row = []
            for direction in directions:
                cell = layer.name + part + direction
                self.parameter(cell + ".weight", (size, gates * units), 1 / math.sqrt(size))
                self.parameter(cell + ".recurrent", (units, gates * units), 1 / math.sqrt(units))
                self.parameter(cell + ".bias", (gates * units,), 0.3)
                if layer.op == "gru":
                    self.parameter(cell + ".recurrent_bias", (gates * units,), 0.3)
                row.append(cell)
            layer.cells.append(row)
            size = units * len(directions)
        layer.cell = {"lstm": _VF.lstm, "gru": _VF.gru}.get(layer.op)
        if layer.op == "rnn":
            layer.cell = _VF.rnn_relu if layer.activation == "relu" else _VF.rnn_tanh
            layer.activation = None  # it works inside the cell
        return (size,) if "last" in layer.options else (shape[0], size)

    # ---- what a line computes -----------------------------------------------------------

    def run_cell(self, layer, cell, x, carry):
        p = self.parameters
        bias = p[cell + ".bias"]
        weights = [p[cell + ".weight"].t(), p[cell + ".recurrent"].t(), bias,
                   p.get(cell + ".recurrent_bias", torch.zeros_like(bias))]
        state = self.states.get(cell) if carry else None
        if state is None:
            state = [torch.zeros(1, len(x), len(p[cell + ".recurrent"]), dtype=x.dtype)] * (2 if layer.op == "lstm" else 1)
        y, *state = layer.cell(x, state if layer.op == "lstm" else state[0], weights, True, 1, 0.0, True, False, True)
        if carry:
            self.states[cell] = [s.detach() for s in state]
        return y

    def run_cells(self, layer, x, carry):
        last = "last" in layer.options
        for k, row in enumerate(layer.cells):
            top = last and k + 1 == len(layer.cells)
            ahead = self.run_cell(layer, row[0], x, carry)
            if top:
                ahead = ahead[:, -1]
            if len(row) == 1:
                x = ahead
                continue
            back = self.run_cell(layer, row[1], x.flip(1), carry).flip(1)
            x = torch.cat([ahead, back[:, 0] if top else back], -1)
        return x

    def compute(self, layer, inputs, training, carry):
        x, p, name = inputs[0], self.parameters, layer.name
        if layer.op == "dense":
            x = x.flatten(1) if x.dim() == 4 else x
            x = x @ p[name + ".weight"]
            return x + p[name + ".bias"] if name + ".bias" in p else x
        if layer.op == "conv":
            return F.conv2d(x, p[name + ".weight"], p.get(name + ".bias"), layer.stride, layer.pad)
        if layer.op == "pool":
            window = (layer.kernel, layer.stride, layer.pad)
            if layer.words[0] == "average":
                return F.avg_pool2d(x, *window, count_include_pad=False)
            return F.max_pool2d(x, *window) if layer.words[0] == "max" else -F.max_pool2d(-x, *window)
        if layer.op == "global-pool":
            kinds = {"max": lambda v: v.amax((2, 3)), "min": lambda v: v.amin((2, 3)), "average": lambda v: v.mean((2, 3))}
            return kinds[layer.words[0]](x)
        if layer.op == "flatten":
            return x.flatten(1)
        if layer.op == "reshape":
            return x.reshape((len(x),) + self.make(layer))
        if layer.op == "embed":
            return F.embedding(x, p[name + ".table"])
        if layer.op == "lookup":
            rows, columns = int(layer.words[0]), int(layer.words[3])
            numbers = x[:, -columns:]
            good = (numbers >= 0) & (numbers < rows) & (numbers == numbers.floor())
            numbers = torch.where(good, numbers, torch.zeros_like(numbers)).long()
            return torch.cat([x[:, :-columns], F.embedding(numbers, p[name + ".table"]).flatten(1)], 1)
        if layer.op in GATES:
            return self.run_cells(layer, x, carry)
        if layer.op == "repeat":
            return x.unsqueeze(1).expand(-1, int(layer.words[0]), -1)
        if layer.op == "batchnorm":
            turned = x.transpose(1, 2) if x.dim() == 3 else x
            y = F.batch_norm(turned, self.statistics[name + ".mean"], self.statistics[name + ".variance"],
                             p[name + ".gamma"], p[name + ".beta"], training)
            return y.transpose(1, 2) if x.dim() == 3 else y
        if layer.op == "layernorm":
            gamma = p[name + ".gamma"]
            return F.layer_norm(x, gamma.shape, gamma, p[name + ".beta"])
        if layer.op == "add":
            return sum(inputs[1:], x)
        if layer.op == "concat":
            return torch.cat(inputs, 2 if x.dim() == 3 else 1)
        return x

    def forward(self, x, training=False, carry=False):
        """What the loss sees, as batch x steps x features."""
        values = [x if self.tokens else x.double()]
        for layer in self.layers[1:]:
            y = self.compute(layer, [values[i] for i in layer.inputs], training, carry)
            values.append(ACTIVATIONS[layer.activation](y) if layer.activation else y)
        y = values[-1]
        return y if y.dim() == 3 else y.unsqueeze(1)

    def predict(self, x):
        with torch.no_grad():
            return ACTIVATIONS[self.final](self.forward(x))

    # ---- training -----------------------------------------------------------------------

    def row_losses(self, output, batch):
        """The loss of every row, batch x steps."""
        if self.loss_kind == "cross-entropy":
            return F.cross_entropy(output.transpose(1, 2), batch["labels"], reduction="none")
        target = batch["targets"].double()
        words = self.settings["loss"]
        delta = single(words[words.index("delta") + 1]) if "delta" in words else 1.0
        kinds = {
            "binary-cross-entropy": lambda: F.binary_cross_entropy_with_logits(output, target, reduction="none"),
            "mean-squared": lambda: F.mse_loss(output, target, reduction="none"),
            "mean-absolute": lambda: F.l1_loss(output, target, reduction="none"),
            "huber": lambda: F.huber_loss(output, target, reduction="none", delta=delta),
        }
        return kinds[self.loss_kind]().mean(-1)

    def loss(self, batch, carry=False):
        """(what is reported, what is differentiated) for a batch of training."""
        rows = self.row_losses(self.forward(batch["x"], True, carry), batch)
        weight = batch["weight"].double()
        if "class-weights" in self.settings:
            of_class = torch.tensor([single(w) for w in self.settings["class-weights"]], dtype=torch.float64)
            weight = weight * of_class[batch["labels"]]
        total = (rows * weight).sum()
        steps = 1 if "sum-steps" in self.settings["loss"] else rows.shape[1]
        return total / weight.sum(), total / (rows.shape[0] * steps)

    def optimizer(self):
        words = list(self.settings.get("optimizer", ["sgd"]))
        kind = words.pop(0)
        options = {words[i]: single(words[i + 1]) for i in range(0, len(words), 2)}
        rate = options["rate"]
        decay = single(self.settings.get("l2", ["0"])[0])
        weights = [v for k, v in self.parameters.items() if k.split(".")[-1] in ("weight", "recurrent", "table")]
        others = [v for k, v in self.parameters.items() if k.split(".")[-1] not in ("weight", "recurrent", "table")]
        groups = [{"params": weights, "weight_decay": decay}]
        if others:
            groups.append({"params": others, "weight_decay": 0})
        momentum = options.get("momentum", single(0.9))
        betas = (options.get("beta1", single(0.9)), options.get("beta2", single(0.999)))
        eps = options.get("eps", single(1e-10 if kind == "adagrad" else 1e-8))
        kinds = {
            "sgd": lambda: torch.optim.SGD(groups, rate),
            "momentum": lambda: torch.optim.SGD(groups, rate, momentum),
            "nesterov": lambda: torch.optim.SGD(groups, rate, momentum, nesterov=True),
            "adagrad": lambda: torch.optim.Adagrad(groups, rate, eps=eps),
            "rmsprop": lambda: torch.optim.RMSprop(groups, rate, options.get("beta2", single(0.99)), eps=eps),
            "adam": lambda: torch.optim.Adam(groups, rate, betas, eps),
            "adamw": lambda: torch.optim.AdamW(groups, rate, betas, eps),
        }
        return kinds[kind](), rate

    def rate_at(self, rate, epoch, rounds_done, an_epoch):
        """Of a round in an epoch (counted from 1) of so many rounds, after so many in all."""
        words = self.settings.get("warmup", ["0"])
        if "scale" in words:
            rate *= int(self.settings["batch"][0]) / int(words[words.index("scale") + 1])
        rate = self.scheduled(rate, epoch, rounds_done, an_epoch * int(self.settings.get("epochs", [10])[0]))
        climb = single(words[0]) * an_epoch
        return rate * (rounds_done + 1) / climb if rounds_done + 1 < climb else rate

    def scheduled(self, rate, epoch, rounds_done, rounds_all):
        words = list(self.settings.get("schedule", ["constant"]))
        kind = words.pop(0)
        if kind == "exponential":
            return rate * single(words[0]) ** (epoch - 1)
        options = {words[i]: single(words[i + 1]) for i in range(0, len(words), 2)}
        if kind == "step":
            start, every = options.get("from", 1), options.get("every", 1)
            factor = options.get("factor", single(0.1))
            return rate * factor ** (1 + (epoch - start) // every) if epoch >= start else rate
        if kind == "cosine":
            to = options.get("to", 0.0)
            return to + (rate - to) * (1 + math.cos(math.pi * rounds_done / rounds_all)) / 2
        return rate

    def clip(self):
        if "clip" not in self.settings:
            return
        limit = single(self.settings["clip"][0])
        norm = math.sqrt(sum(float((p.grad ** 2).sum()) for p in self.parameters.values()))
        for p in self.parameters.values():
            p.grad *= min(1.0, limit / norm)

    def train(self, data, rounds):
        """So many rounds over the data; the reported losses."""
        size, count = int(self.settings["batch"][0]), len(data["x"])
        an_epoch = -(-count // size)
        optimizer, rate = self.optimizer()
        losses = []
        for r in range(rounds):
            epoch, first = r // an_epoch, r % an_epoch * size
            if first == 0:
                self.states = {}
            batch = {k: v[first:first + size] for k, v in data.items()}
            for group in optimizer.param_groups:
                group["lr"] = self.rate_at(rate, epoch + 1, r, an_epoch)
            optimizer.zero_grad()
            reported, objective = self.loss(batch, self.carry)
            objective.backward()
            self.clip()
            optimizer.step()
            losses.append(float(reported))
        return losses
