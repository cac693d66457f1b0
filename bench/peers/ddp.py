"""ddp.py: how fast PyTorch's DistributedDataParallel over gloo trains LeNet-5 on this machine.

    ddp.py --processes 2 --batch 128 --seconds 5      prints {"batches_per_s": 61.2, "processes": 2}
    ddp.py --version                                  prints {"version": "2.15.0"}

Every process has one thread and trains batches of its own; gradients are averaged in every step. Batches are
summed over the processes, as in `shoal bench scaling`. Images are in channels_last, the faster order here."""
import argparse
import json
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import torch_peer

WARM_UP_STEPS = 10
STEPS_A_LOOK = 5  # between two looks at the clock, which all processes must agree on


def train(rank, processes, batch, seconds, meeting, answers):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes)
    x, labels = torch.randn(batch, 1, 28, 28), torch.randint(10, (batch,))
    x = x.contiguous(memory_format=torch.channels_last)
    model = DistributedDataParallel(torch_peer.LeNet5().to(memory_format=torch.channels_last))
    updates = torch_peer.optimizer("lenet5", model)

    def run(steps):
        for _ in range(steps):
            updates.zero_grad(set_to_none=True)
            F.cross_entropy(model(x), labels).backward()
            updates.step()

    run(WARM_UP_STEPS)
    dist.barrier()
    start, steps, over = time.perf_counter(), 0, torch.zeros(1)
    while not over.item():
        run(STEPS_A_LOOK)
        steps += STEPS_A_LOOK
        over[0] = time.perf_counter() - start >= seconds
        dist.broadcast(over, 0)
    if rank == 0:
        answers.put(processes * steps / (time.perf_counter() - start))
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--version", action="store_true")
    options = parser.parse_args()
    if options.version:
        print(json.dumps({"version": torch.__version__}))
        return
    answers = mp.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:  # the processes find each other through a file in it
        mp.spawn(train, (options.processes, options.batch, options.seconds, f"{folder}/meeting", answers),
                 nprocs=options.processes)
    print(json.dumps({"batches_per_s": answers.get(), "processes": options.processes}))


if __name__ == "__main__":
    main()
