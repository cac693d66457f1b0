"""docs_commands.py FILE...: runs the commands of these documents, as they are written and in their order.

Each document has a folder of its own that looks like the repository after `make run`. What stands in a code block with
commands is run, line by line; a block that begins with "# NAME.txt" is that file. Whole commands within a sentence are
run, too, and of all others the options must exist. The data set is a small one, through SHOAL_DATA, so that trainings are
short; the server is at another port, through SHOAL_LINK; a script stands in for ssh. What else differs from the words
of a document is in the tables below, and nowhere else. A line that no table knows fails: teach it here, or mend the
document.

SHOAL is the program, SOURCE_DIR the repository."""
import concurrent.futures
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib

SHOAL, SOURCE = os.environ["SHOAL"], os.environ["SOURCE_DIR"]
PATIENCE_S = 300  # for a command that makes no progress any more; no test of speed

# Words that cannot be as they are written, and what stands for them: addresses of other machines, ports that may be
# taken, a budget of minutes. {0}, {1}, ... are free ports of this machine.
INSTEAD = [
    ("http://10.0.0.7:8080/#t=TOKEN", "http://127.0.0.1:{0}"), ("http://10.0.0.7:8080", "http://127.0.0.1:{0}"),
    ("http://127.0.0.1:8080", "http://127.0.0.1:{0}"), ("https://host:8080", "http://127.0.0.1:{8}"),
    ("--listen :8080", "--listen 127.0.0.1:{1}"),
    ("node1:7000", "127.0.0.1:{2}"), ("node1:7001", "127.0.0.1:{3}"), ("node1:7002", "127.0.0.1:{4}"),
    ("node2:7000", "127.0.0.1:{5}"), ("node3:7000", "127.0.0.1:{6}"),
    ("127.0.0.1:7100", "127.0.0.1:{2}"), ("127.0.0.1:7101", "127.0.0.1:{3}"), ("127.0.0.1:7102", "127.0.0.1:{4}"),
    ("127.0.0.1:7103", "127.0.0.1:{5}"),
    ("@10.0.0.5/", "@127.0.0.1:{7}/"),  # no broker is there: that is what must be said
    ("/scratch/fashion-mnist", "$SHOAL_DATA/fashion-mnist"),
    ("examples/cluster.txt", "cluster-here.txt"), ("$PWD/build/shoal", "$(command -v shoal)"),
    ("shoal-server/admin.link", "others/admin.link"), ('"job": 7, ', ""),
    ("--budget 2m", "--budget 4s"), ("--seconds 60", "--seconds 3"),
]

# What is done with a command, by how it begins; the first that fits counts. `more` is added to its words.
#   run         it must end with status 0
#   background  the same, but the lines after it run meanwhile
#   serves      runs until the document ends; the line after it waits for this text
#   says        runs until it says this text
#   not here    is not run; the reason
RULES = [
    (r"make (run|test)\b", "not here", "this test is part of make test; what make run does is done first"),
    (r"shoal serve .*--queue", "says", "is the broker running there?", "--data-dir queue-server"),
    (r"shoal serve --listen \S+ --tls", "serves", "Serving at https://", "--data-dir tls-server"),
    (r"shoal serve --listen .*--data-dir", "serves", "Serving at", ""),
    (r"shoal serve --listen", "serves", "Serving at", "--listen 127.0.0.1:{0}"),
    (r"shoal serve$", "serves", "Serving at", "--listen 127.0.0.1:{0}"),
    (r"shoal (work|agent act|agent train) .*amqp:", "says", "is the broker running there?", ""),
    (r"shoal work", "serves", "connected to", "--yes --no-pause --on-battery"),
    (r"shoal train .*--job-name (ps|worker --task-index 1)", "background", "", ""),
    (r"shoal train .*--job-name", "run", "", ""),
    (r"shoal launch", "run", "", "--ssh ./ssh"),
    (r"shoal host --env", "run", "", "--seconds 3"),
    (r"shoal agent train --env '?gym:", "not here", "Gymnasium comes from PyPI; make interop has it"),
    (r"SHOAL_PYTHON=\S+ shoal agent play gym-", "not here", "the same"),
    (r"python3 -m pip ", "not here", "the same"),
    (r"(shoal|mpirun|openssl|curl|export|build/shoal)\b", "run", "", ""),
    (r"\w+=", "set", "", ""),
    (r"(apt|rabbitmqctl) ", "not here", "changes the machine; tools/rabbitmq does the same in a folder"),
]
# What a document takes for granted: a command that is run before the first one that begins so.
BEFORE = [
    (r"token=", "shoal serve --listen 0.0.0.0:{8} --data-dir others"),  # a server that others can reach
    (r"shoal (host|status|job) ", "shoal serve"),
    (r"shoal (host|status|job) ", "shoal work http://127.0.0.1:8080"),
]
COMMAND = re.compile(r"(\w+=\S* )?(shoal|make|mpirun|openssl|curl|apt|rabbitmqctl|python3|export|tools/\w+|build/\w+) |\w+=\S")
WHOLE_IN_A_SENTENCE = re.compile(
    r"shoal (help( \w+)?|data list|agent list|status|host \S+\.(net|csv) --.*|serve --listen .*|search \S+\.csv .*)$")
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|\.\.\.")


def write_images(folder, count):
    """Images in the place of Fashion-MNIST's: noise, with a band where the class is."""
    os.makedirs(folder)
    draw = random.Random(7)
    for name, n in (("train", count), ("t10k", count // 4)):
        labels = bytes(i % 10 for i in range(n))
        images = bytearray()
        for label in labels:
            for y in range(28):
                images += b"\xff" * 28 if y // 3 == label else draw.randbytes(28)
        with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as file:
            file.write(struct.pack(">4i", 2051, n, 28, 28) + images)
        with open(f"{folder}/{name}-labels-idx1-ubyte", "wb") as file:
            file.write(struct.pack(">2i", 2049, n) + labels)


def write_png(path, shade):
    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    rows = b"".join(b"\0" + bytes([shade + (x + y) % 60 for x in range(28)]) for y in range(28))
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 0, 0, 0, 0)) +
                   part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))


def write_pets(folder):
    """What the guide says of folders of images: the reader has some."""
    for k, kind in enumerate(("cat", "dog")):
        os.makedirs(f"{folder}/{kind}")
        for i in range(1, 13):
            write_png(f"{folder}/{kind}/{i}.png", 60 * k + i)
        shutil.copy(f"{SOURCE}/fuzz/corpus/image_file/grey.jpg", f"{folder}/{kind}/{1 + 100 * (1 - k)}.jpg")
    os.remove(f"{folder}/dog/1.png")


class Document:
    def __init__(self, name, folder):
        self.name, self.folder, self.failures, self.ran = name, folder, [], 0
        self.servers, self.background, self.started, self.settings = [], [], [], ""
        self.ports = subprocess.run([f"{SOURCE}/tools/ports", "9"], capture_output=True, text=True).stdout.split()
        self.environment = dict(
            os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}", SHOAL_DATA=f"{folder}/sets", HOME=f"{folder}/home",
            XDG_DATA_HOME=f"{folder}/home/data", XDG_CACHE_HOME=f"{folder}/home/cache", LC_ALL="C",
            SHOAL_LINK=f"http://127.0.0.1:{self.ports[0]}", OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl="self,vader",
            ASAN_OPTIONS="detect_leaks=0", TSAN_OPTIONS="report_bugs=0")
        for key in ("SHOAL_KERNELS", "SHOAL_TOKEN", "COLUMNS"):
            self.environment.pop(key, None)

    def prepare(self):
        for sub in ("bin", "home", "sets", "runs"):
            os.makedirs(f"{self.folder}/{sub}")
        for link in ("examples", "tools", "docs"):
            os.symlink(f"{SOURCE}/{link}", f"{self.folder}/{link}")
        self.write("bin/shoal", f'#!/bin/sh\nexec "{SHOAL}" "$@"\n', 0o755)
        # A stand-in for ssh, whose machines are all this one: HOST and the command are its last words.
        self.write("ssh", '#!/bin/bash\ncd "$HOME" && exec sh -c "${@: -1}"\n', 0o755)
        self.write("hosts", "localhost slots=2\n")
        self.write("cluster-here.txt", self.instead(open(f"{SOURCE}/examples/cluster.txt").read()))
        os.symlink(f"{SOURCE}/examples", f"{self.folder}/home/examples")
        write_images(f"{self.folder}/sets/fashion-mnist", 160)
        write_pets(f"{self.folder}/pets")
        made = re.search(r"^run:.*\n(?:\t@.*\n)*\t\$\(BUILD\)/(shoal train .*)$", open(f"{SOURCE}/Makefile").read(), re.M)
        self.run_line(made[1] if made else "shoal train # make run is not in the Makefile any more")

    def write(self, name, text, mode=0o644):
        with open(f"{self.folder}/{name}", "w") as file:
            file.write(text)
        os.chmod(f"{self.folder}/{name}", mode)

    def fail(self, line, why):
        self.failures.append(f"{self.name}: {line}\n    {why}")

    def instead(self, text):
        for written, stand_in in INSTEAD:
            text = text.replace(written, stand_in.format(*self.ports) if "{" in stand_in else stand_in)
        return text

    def start(self, line, log):
        # The rest of a line behind a comment would be one as well.
        return subprocess.Popen(["bash", "-c", f"{self.settings}\n{line}"], cwd=self.folder, env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def wait_for(self, process, path, text):
        """Until the process has said this, or has ended, or says nothing new for too long."""
        size, since = -1, time.monotonic()
        while time.monotonic() - since < PATIENCE_S:
            said = open(path, errors="replace").read()
            if text is not None and text in said:
                return True
            if process.poll() is not None:
                return text is not None and text in open(path, errors="replace").read()
            if len(said) != size:
                size, since = len(said), time.monotonic()
            time.sleep(0.05)
        return False

    def run_line(self, line):
        for begins, command in BEFORE:
            kind = command if "--" in command else " ".join(command.split()[:2])
            if re.match(begins, line) and not any(known.startswith(kind) for known in self.started):
                self.started.append(command)
                self.run_line(command.format(*self.ports))
        rule = next((r for r in RULES if re.match(r[0], re.sub(r"\s+#.*", "", line))), None)
        if rule is None:
            return self.fail(line, "docs_commands.py has no rule for this command")
        _, action, text, *more = rule
        if action == "not here":
            return None
        if action == "set":
            self.settings += self.instead(line) + "\n"
            return None
        bare = self.instead(re.sub(r"\s+# .*$", "", line))
        more = "".join(more).format(*self.ports)
        after = bare.split("launch", 1) if "--ssh" in more else [bare]
        words = f"{after[0]}launch {more}{after[1]}" if len(after) == 2 else f"{bare} {more}".strip()
        self.ran += 1
        self.started.append(line)
        path = f"{self.folder}/log-{self.ran}"
        with open(path, "w") as log:
            process = self.start(words, log)
        if action == "background":
            return self.background.append((line, process, path))
        if action == "serves":
            self.servers.append(process)
        if action in ("serves", "says"):
            if not self.wait_for(process, path, text):
                self.fail(line, f"did not say '{text}': {self.tail(path)}")
            if action == "says":
                self.end(process)
            return None
        self.wait_for(process, path, None)
        return self.judge(line, process, path)

    def tail(self, path):
        return open(path, errors="replace").read()[-600:]

    def judge(self, line, process, path):
        if process.poll() is None:
            self.end(process)
            self.fail(line, f"does not end: {self.tail(path)}")
        elif process.returncode != 0 or '{"error"' in self.tail(path):
            self.fail(line, f"ended with {process.returncode}: {self.tail(path)}")

    def end(self, process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()

    def run_block(self, lines):
        first = re.match(r"# (\S+\.txt)$", lines[0])
        if first:
            return self.write(first[1], self.instead(os.path.expandvars("\n".join(lines[1:]) + "\n")).replace(
                "$SHOAL_DATA", self.environment["SHOAL_DATA"]))
        if not any(COMMAND.match(line + " ") for line in lines):
            return None
        for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).split("\n"):
            if line.strip() and not line.startswith("#"):
                self.run_line(line.strip())
        for line, process, path in self.background:
            self.wait_for(process, path, None)
            self.judge(line, process, path)
        self.background = []
        return None

    def check_sentence(self, text):
        for line in re.findall(r"`(shoal [a-z][^`]*)`", text):
            if line in self.started:
                continue
            if WHOLE_IN_A_SENTENCE.match(line) and not PLACEHOLDER.search(line):
                self.run_line(line)
                continue
            words = line.split()
            command = words[1:3] if words[1] == "agent" and len(words) > 2 else words[1:2]
            known = subprocess.run([SHOAL, "help", *command], capture_output=True, text=True)
            for option in re.findall(r"(?<= )--[a-z0-9-]+", line):
                if f"{option}" not in known.stdout.split():
                    self.fail(line, f"shoal help {' '.join(command)} knows no {option}")

    def run(self):
        self.prepare()
        lines, block, sentence, language = open(f"{SOURCE}/{self.name}").read().split("\n"), None, [], ""
        for line in lines:
            fence = line.strip().startswith("```")
            if not fence:
                (sentence if block is None else block).append(line.rstrip())
            elif block is None:
                self.check_sentence("\n".join(sentence))
                block, sentence, language = [], [], line.strip()[3:]
            else:
                if block and language in ("", "sh"):
                    self.run_block(block)
                block = None
        self.check_sentence("\n".join(sentence))
        for process in self.servers:
            self.end(process)
        return self


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        documents = []
        for i, name in enumerate(sys.argv[1:]):
            os.makedirs(f"{folder}/{i}")
            documents.append(Document(name, f"{folder}/{i}"))
        with concurrent.futures.ThreadPoolExecutor(len(documents)) as pool:
            list(pool.map(Document.run, documents))
        for document in documents:
            print(f"{document.name}: {document.ran} commands, {len(document.failures)} failed")
            for failure in document.failures:
                print("FAILED:", failure, file=sys.stderr)
            assert document.ran > 0, document.name
        return 1 if any(document.failures for document in documents) else 0


sys.exit(main())
