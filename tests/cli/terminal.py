"""A shell in a terminal that a test types into and reads (tmux), and the ways of a chat in it.

Every step waits until the screen shows what it must, up to a deadline; nothing depends on speed.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import signal
import subprocess
import termios
import time

PATIENCE_SECONDS = 60
KEYS = {"up": "Up", "left": "Left", "enter": "Enter", "backspace": "BSpace",
        "ctrl-a": "C-a", "ctrl-c": "C-c", "ctrl-d": "C-d", "ctrl-e": "C-e", "ctrl-r": "C-r", "ctrl-z": "C-z", "tab": "Tab"}


class Failure(Exception):
    pass


def check(condition, what):
    if not condition:
        raise Failure(what)


class Terminal:
    """A shell in a terminal of its own; the working directory is `home`."""

    def __init__(self, sluice, home, name):
        self.home = home
        self.tmux = ["tmux", "-u", "-L", name, "-f", "/dev/null"]
        sanitizers = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": home, "XDG_STATE_HOME": home + "/state",
            "TMUX_TMPDIR": home, "SHELL": "/bin/sh", "PS1": "$ ", "LANG": "C.UTF-8",
            "S": os.path.abspath(sluice), **sanitizers}
        self.run("new-session", "-d", "-x", "100", "-y", "40", "-c", home, "exec /bin/sh")
        self.wait_for_line("$")

    def run(self, *args):
        return subprocess.run(self.tmux + list(args), env=self.environment, check=True,
                              capture_output=True, text=True).stdout

    def close(self):
        self.run("kill-server")

    def press(self, *keys):
        self.run("send-keys", *(KEYS[key] for key in keys))

    def type(self, text):
        self.run("send-keys", "-l", "--", text)

    def paste(self, text):
        """As a terminal does it that marks where a paste begins and ends, where it was asked to."""
        with open(f"{self.home}/paste", "w", encoding="utf-8") as file:
            file.write(text)
        self.run("load-buffer", f"{self.home}/paste")
        self.run("paste-buffer", "-p")

    def lines(self, *flags):
        """What the screen shows, without the empty lines at the end."""
        return self.run("capture-pane", "-p", *flags).rstrip("\n").split("\n")

    def chat_pid(self):
        """Of the program that runs in the foreground of the shell."""
        shell = self.run("list-panes", "-F", "#{pane_pid}").strip()
        with open(f"/proc/{shell}/task/{shell}/children", encoding="ascii") as children:
            return int(children.read())

    def wait_until_taken(self, number):
        """Until no such signal is pending: a second one before that would be one with the first."""
        def is_pending(line):
            return line.startswith(("SigPnd:", "ShdPnd:")) and int(line.split()[1], 16) >> (number - 1) & 1

        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                with open(f"/proc/{self.chat_pid()}/status", encoding="ascii") as status:
                    if not any(is_pending(line) for line in status):
                        return
            except (OSError, ValueError):  # it has ended
                return
            time.sleep(0.01)
        raise Failure(f"signal {number} stays pending")

    def wait_until_busy(self):
        """Until it has computed for a second from now on: by its own clock, which other work does not move."""
        def cpu_seconds():
            with open(f"/proc/{self.chat_pid()}/stat", encoding="ascii") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        enough = cpu_seconds() + 1
        deadline = time.monotonic() + PATIENCE_SECONDS
        while cpu_seconds() < enough:
            check(time.monotonic() < deadline, "the chat computes nothing")
            time.sleep(0.02)

    def resize(self, columns):
        """Until the program in the terminal has been told: what is typed before is drawn for the old size."""
        self.run("resize-window", "-x", str(columns), "-y", "40")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            tty = os.open(self.run("list-panes", "-F", "#{pane_tty}").strip(), os.O_RDWR | os.O_NOCTTY)
            try:
                if os.get_terminal_size(tty).columns == columns:
                    break
            finally:
                os.close(tty)
            check(time.monotonic() < deadline, f"the terminal does not get {columns} columns")
            time.sleep(0.02)
        self.wait_until_taken(signal.SIGWINCH)

    def is_editing(self):
        """Whether the line editor reads. It prompts first: what is typed between shows up twice."""
        tty = os.open(self.run("list-panes", "-F", "#{pane_tty}").strip(), os.O_RDWR | os.O_NOCTTY)
        try:
            return not termios.tcgetattr(tty)[3] & termios.ICANON
        finally:
            os.close(tty)

    def wait(self, condition, what):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            lines = self.lines()
            if condition(lines) and (lines[-1] not in (">", "...") or self.is_editing()):
                return lines
            time.sleep(0.02)
        raise Failure(f"expected {what}; the screen shows\n  " + "\n  ".join(self.lines()))

    def wait_for_line(self, last):
        """Until the last line is this one; a pattern or a text."""
        if isinstance(last, re.Pattern):
            return self.wait(lambda lines: last.fullmatch(lines[-1]), f"{last.pattern} at the end")
        return self.wait(lambda lines: lines[-1] == last, f"{last!r} at the end")

    def enter(self, text, prompt=">"):
        """Types a line, sees it echoed, and sends it."""
        self.type(text)
        self.wait_for_line(f"{prompt} {text}")
        self.press("enter")

    def shell(self, command):
        """Runs a command to its end, from one prompt to the next."""
        self.run("send-keys", "-R")  # clears the screen
        self.run("clear-history")
        self.type(command)
        self.press("enter")
        self.wait(lambda lines: lines[-1] == "$" and len(lines) > 1, "the shell's prompt")

    def start_chat(self, flags, model="m.gguf"):
        """Remembers the terminal's state, starts a chat and waits for its prompt."""
        self.shell("stty -g > before")
        self.type(f"$S run -m {model} {flags}")
        self.press("enter")
        self.wait_for_line(">")

    def expect_shell(self, exit_code):
        """The chat is over, the terminal as before."""
        self.wait_for_line("$")
        self.shell("echo $? > code; stty -g > after")
        code, before, after = self.read("code"), self.read("before"), self.read("after")
        check(code == f"{exit_code}\n", f"exit code {code}, expected {exit_code}")
        check(after == before, f"the terminal is not as before: stty -g says {after}, not {before}")

    def read(self, name):
        with open(f"{self.home}/{name}", encoding="utf-8") as file:
            return file.read()

    def answer(self):
        """Waits for the end of an answer of twelve letters, and returns it."""
        lines = self.wait(lambda lines: len(lines) > 2 and lines[-1] == ">" and
                          lines[-2].endswith("(end_of_text)]"), "an answer and the next prompt")
        check(re.fullmatch("[a-z]{12}", lines[-3]), f"{lines[-3]!r} is no answer of 12 letters")
        return lines[-3]

    def asked(self):
        """The messages of the user, as the chat knows them."""
        if os.path.exists(f"{self.home}/chat.json"):
            os.remove(f"{self.home}/chat.json")
        self.enter("/save chat.json")
        self.wait(lambda lines: lines[-1] == ">" and lines[-2].endswith("messages saved"), "saved")
        return [m["content"] for m in json.loads(self.read("chat.json")) if m["role"] == "user"]

    def check_asked(self, expected):
        asked = self.asked()
        check(asked == expected, f"asked {asked}")

    def start_endless_answer(self, line):
        self.enter(line)
        self.wait_for_line(re.compile("a+"))

    def stop_answer(self):
        self.press("ctrl-c")
        self.wait(lambda lines: lines[-1] == ">" and lines[-2].endswith("(interrupt)]"),
                  "the answer to stop")
