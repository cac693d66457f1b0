"""torch_peer.py: the networks of `make bench` in PyTorch; peer.py says how it is spoken with.

Modes: eager; channels_last, the other order of an image's values; compile, the network through
torch.compile; compile_channels_last, both; sparse, an embedding whose gradient has only the rows
that were used (plain SGD gives the same weights either way)."""
import peer
import torch
import torch.nn.functional as F
from torch import nn


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.dense1, self.dense2 = nn.Linear(800, 500), nn.Linear(500, 10)

    def forward(self, x):
        x = F.max_pool2d(torch.tanh(self.conv1(x)), 2)
        x = F.max_pool2d(torch.tanh(self.conv2(x)), 2)
        return self.dense2(torch.tanh(self.dense1(x.flatten(1))))


class WordLstm(nn.Module):
    """PyTorch's LSTM has two biases where one does; the second stays zero."""

    def __init__(self, sparse):
        super().__init__()
        self.embed = nn.Embedding(10000, 200, sparse=sparse)
        self.lstm = nn.LSTM(200, 200, 2)
        for bias in (self.lstm.bias_hh_l0, self.lstm.bias_hh_l1):
            nn.init.zeros_(bias).requires_grad_(False)
        self.dense = nn.Linear(200, 10000)

    def forward(self, x):  # steps x batch
        y, _ = self.lstm(self.embed(x))
        return self.dense(y).flatten(0, 1)


def conv_norm(before, after, size, stride):
    return nn.Sequential(nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False),
                         nn.BatchNorm2d(after))


class Block(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        stride = 1 if before == after else 2
        self.first, self.second = conv_norm(before, after, 3, stride), conv_norm(after, after, 3, 1)
        self.around = nn.Identity() if before == after else conv_norm(before, after, 1, stride)

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))) + self.around(x))


class Resnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv_norm(3, 16, 3, 1)
        self.blocks = nn.Sequential(Block(16, 16), Block(16, 16), Block(16, 32), Block(32, 32),
                                    Block(32, 64), Block(64, 64))
        self.dense = nn.Linear(64, 10)

    def forward(self, x):
        return self.dense(self.blocks(torch.relu(self.stem(x))).mean((2, 3)))


def perceptron(widths, activation):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers[:-1])


MODELS = {"lenet5": LeNet5, "resnet": Resnet, "mlp": lambda: perceptron([784, 100, 10], nn.Sigmoid),
          "dense": lambda: perceptron([100, 512, 512, 512, 2], nn.ReLU)}


def begin(model, start):
    """Sets all parameters that learn, in the order of the layers; ours have a matrix as inputs x outputs."""
    layers = [m for m in model.modules() if isinstance(m, (nn.Linear, nn.Conv2d, nn.Embedding, nn.LSTM, nn.BatchNorm2d))]
    own = [(p, isinstance(m, (nn.Linear, nn.LSTM)) and p.dim() == 2)
           for m in layers for p in m.parameters() if p.requires_grad]
    with torch.no_grad():
        for (parameter, is_turned), (_, w) in zip(own, start.weights, strict=True):
            w = torch.tensor(w)
            w = w.t() if is_turned else w
            assert parameter.shape == w.shape
            parameter.copy_(w)


def optimizer(network, model):
    if network == "resnet":
        decayed = [p for p in model.parameters() if p.dim() > 1]
        plain = [p for p in model.parameters() if p.dim() == 1]
        return torch.optim.SGD([{"params": decayed, "weight_decay": 0.0005}, {"params": plain}],
                               lr=0.1, momentum=0.9, nesterov=True)
    rates = {"lenet5": 0.025, "lstm-ptb": 0.05, "mlp": 0.5, "dense": 0.05}
    return torch.optim.SGD(model.parameters(), lr=rates[network])


def prepare(network, mode, start):
    model = WordLstm(sparse=mode == "sparse") if network == "lstm-ptb" else MODELS[network]()
    begin(model, start)
    x, labels = torch.tensor(start.x), torch.tensor(start.labels).long()
    x = x if x.is_floating_point() else x.long()
    if mode.endswith("channels_last"):
        model = model.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    updates = optimizer(network, model)
    forward = torch.compile(model, dynamic=False) if mode.startswith("compile") else model

    def run(steps):
        for _ in range(steps):
            updates.zero_grad(set_to_none=True)
            loss = F.cross_entropy(forward(x), labels)
            loss.backward()
            updates.step()
        return loss.item()

    return run


IMAGES = ["eager", "channels_last", "compile", "compile_channels_last"]
MODES = {"lenet5": IMAGES, "resnet": IMAGES, "lstm-ptb": ["eager", "sparse", "compile"],
         "mlp": ["eager", "compile"], "dense": ["eager", "compile"]}

if __name__ == "__main__":
    torch.set_num_threads(peer.parse_threads())
    # Else torch.compile meets a second batch size with code for any size, which is slower.
    peer.serve(torch.__version__, MODES, prepare, forget=torch.compiler.reset)
