#!/usr/bin/env python3
"""The chat as a person meets it: types into a real terminal (tmux) and reads the screen.

    terminal_test.py SLUICE [CASE...]

Exit code 1 on any failure, with the screen; 77 (SKIPPED) where there is no tmux.
SPDX-License-Identifier: Apache-2.0
"""
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from terminal import PATIENCE_SECONDS, Failure, Terminal, check  # noqa: E402

SKIPPED = 77
# Twelve letters and the end; or the same letter without one.
SHORT = "--grammar 'root ::= [a-z]{12}' --seed 1"
ENDLESS = "-c 200000 --logit-bias 97+100"


def stops_answers_and_not_the_program(t):
    t.start_chat(ENDLESS)
    for line in ("hello", "go on", "/regen"):
        t.start_endless_answer(line)
        t.stop_answer()
    check(t.asked() == ["hello", "go on"], "the stopped answers are not in the conversation")
    t.enter("/stats")
    t.wait(lambda lines: re.match(r"context: \d+ of 200000 tokens, KV cache ", lines[-2]) and
           lines[-3].endswith("(interrupt)"), "statistics")
    t.enter("/quit")
    t.expect_shell(0)


def edits_lines(t):
    t.start_chat(SHORT)
    t.type("wrld")
    t.press("left", "left", "left")
    t.type("o")
    t.press("ctrl-a")
    t.type("hello ")
    t.press("ctrl-e")
    t.type("!")
    t.wait_for_line("> hello world!")
    t.press("enter")
    first = t.answer()
    t.enter("/regen")
    check(t.answer() != first, "/regen gave the same answer again")
    t.press("up")
    t.wait_for_line("> /regen")
    t.press("up")
    t.wait_for_line("> hello world!")
    t.press("backspace")
    t.wait_for_line("> hello world")
    t.press("enter")
    t.answer()
    t.check_asked(["hello world!", "hello world"])
    t.enter("/help")
    t.wait(lambda lines: any("/load FILE" in line for line in lines) and lines[-1] == ">", "help")
    t.enter("/quit")
    t.expect_shell(0)


def keeps_history_for_the_next_chat(t):
    mode = stat.S_IMODE(os.stat(t.home + "/state/sluice/history").st_mode)
    check(mode == 0o600, f"the history can be read by others: {mode:o}")
    t.start_chat(SHORT)
    t.press("up")
    t.wait_for_line("> /quit")
    t.press("ctrl-c")
    t.wait_for_line(">")
    t.press("ctrl-d")
    t.expect_shell(0)


def keeps_the_chat_when_a_line_is_thrown_away(t):
    t.start_chat(SHORT)
    t.type("half a li")
    t.wait_for_line("> half a li")
    t.press("ctrl-c")
    t.wait_for_line(">")
    t.enter('"""')
    t.wait_for_line("...")
    t.enter("thrown away", prompt="...")
    t.wait_for_line("...")
    t.press("ctrl-c")
    t.wait_for_line(">")
    t.enter("whole")
    t.answer()
    t.check_asked(["whole"])
    t.press("ctrl-d")
    t.expect_shell(0)


def takes_ctrl_c_at_any_moment(t):
    """The press comes right behind the letters, while the editor is busy with them."""
    t.start_chat(SHORT)
    for n in range(20):
        n_lines = len(t.lines())
        t.run("send-keys", *("half" + " and more" * (n % 3)), "C-c")
        t.wait(lambda lines, before=n_lines: len(lines) > before and lines[-1] == ">",
               f"a new prompt after press {n + 1}")
    t.enter("whole")
    t.answer()
    check(t.asked() == ["whole"], "a line that was thrown away came back")
    t.press("ctrl-d")
    t.expect_shell(0)


def takes_several_lines(t):
    t.start_chat(SHORT)
    t.enter('"""')
    for line in ("one", "two", '"""'):
        t.wait_for_line("...")
        t.enter(line, prompt="...")
    t.answer()
    t.enter("three\\")
    t.wait_for_line("...")
    t.enter("four", prompt="...")
    t.answer()
    t.check_asked(["one\ntwo", "three\nfour"])
    t.press("ctrl-d")
    t.expect_shell(0)


def deletes_whole_characters(t):
    t.shell("export LC_ALL=C")  # what is typed is UTF-8 all the same
    t.start_chat(SHORT)
    t.type("äö你好😀")
    t.wait_for_line("> äö你好😀")
    t.press("backspace", "backspace")
    t.wait_for_line("> äö你")
    t.press("left", "backspace")
    t.wait_for_line("> ä你")
    t.press("ctrl-e")
    t.type("!")
    t.wait_for_line("> ä你!")
    t.press("enter")
    t.answer()
    t.check_asked(["ä你!"])
    t.press("ctrl-d")
    t.expect_shell(0)


def sees_a_new_size_and_still_ends(t):
    t.start_chat(SHORT)
    t.run("resize-window", "-x", "130", "-y", "30")
    t.enter("after the change")
    t.answer()
    t.run("resize-window", "-x", "100", "-y", "40")
    t.press("ctrl-d")
    t.expect_shell(0)


def draws_the_line_anew_at_a_new_size(t):
    def line_of(screen):
        """The line that is edited, from its prompt on, without blanks: a wide character may leave one at a row's end."""
        begin = max(i for i, line in enumerate(screen) if line.startswith(">"))
        return "".join(screen[begin:]).replace(" ", "")

    t.start_chat(SHORT)
    t.enter("hello")
    t.answer()
    text = "wide 你好你好 ones and ä, ö, ü " * 5 + "end"
    t.type(text)
    t.wait(lambda screen: line_of(screen) == ">" + text.replace(" ", ""), "the line")
    for columns in (61, 40, 120, 33, 100):
        t.resize(columns)
        text += str(columns)
        t.type(str(columns))
        screen = t.wait(lambda screen: line_of(screen) == ">" + text.replace(" ", ""), f"it in {columns} columns")
        check(sum(line.startswith("> wide") for line in screen) == 1, f"more than one line: {screen}")
        check("> hello" in t.lines("-S", "-"), f"what was above is gone: {screen}")
        check(max(len(line) for line in screen) <= columns, f"wider than the window: {screen}")
    t.press("ctrl-a")
    t.resize(50)
    t.type("X")
    text = "X" + text
    t.wait(lambda screen: line_of(screen) == ">" + text.replace(" ", ""), "an X at its beginning")
    t.resize(100)
    t.press("enter")
    t.answer()
    t.check_asked(["hello", text])
    t.press("ctrl-d")
    t.expect_shell(0)


def goes_on_after_a_pause(t):
    t.start_chat(SHORT)
    t.type("half ")
    t.wait_for_line("> half")
    t.press("ctrl-z")
    t.wait_for_line("$")
    t.enter("fg", prompt="$")
    t.wait_for_line("> half")
    t.enter("a line", prompt="> half")
    t.answer()
    t.check_asked(["half a line"])
    t.press("ctrl-d")
    t.expect_shell(0)


def gives_the_terminal_back_when_killed(t):
    t.start_chat(SHORT + " --trace-out killed.slrt")
    t.type("half a li")
    t.wait_for_line("> half a li")
    os.kill(t.chat_pid(), signal.SIGTERM)
    t.expect_shell(128 + signal.SIGTERM)
    left = [name for name in os.listdir(t.home) if name.startswith("killed")]
    check(not left, f"the trace left {left}")


def ends_at_the_second_ctrl_c_while_it_is_busy(t):
    # One step of a minute or so: the first press is only seen at its end.
    message = {"role": "user", "content": "x" * 60000}
    with open(t.home + "/long.json", "w", encoding="utf-8") as file:
        json.dump([message], file)
    t.start_chat("-c 65000 --prefill-chunk 65000 --verbose-prompt")
    t.enter("/load long.json")
    t.wait(lambda lines: lines[-1] == ">" and lines[-2] == "1 messages loaded", "loaded")
    t.enter("/regen")
    t.wait(lambda lines: "---" in lines, "the prompt to be shown")  # a progress bar may follow
    t.wait_until_busy()  # a press before the step begins would end the answer at once
    # As the key does; but a progress bar may write over its ^C, which would show that it came.
    for _ in range(2):
        os.kill(t.chat_pid(), signal.SIGINT)
        t.wait_until_taken(signal.SIGINT)
    t.expect_shell(128 + signal.SIGINT)


def lets_no_output_steer_the_terminal(t):
    evil = r'"A\x1b[31m\x1b]0;evil\x07B\r\x08C\u009b32mD\x7f\tE"'
    t.shell("export NO_COLOR=1; printf '\\033]0;good\\007'")
    t.start_chat(f"--grammar 'root ::= {evil}'", model="evil.gguf")
    t.enter("hello")
    t.wait(lambda lines: lines[-1] == ">" and lines[-2].endswith("(end_of_text)]"), "an answer")
    lines = t.lines("-e")
    check(re.fullmatch(r"A\[31m\]0;evilBC32mD\s+E", lines[-3]), f"the answer reads {lines[-3]!r}")
    check(not any("\x1b" in line for line in lines), "something was coloured")
    check(t.run("display-message", "-p", "#{pane_title}") == "good\n", "the title was changed")
    check(any(line.startswith("?[31m?[31mevil name") for line in lines), "the name is not shown")
    t.press("ctrl-d")
    t.expect_shell(0)


def dims_thinking(t):
    t.start_chat("-n 20 --logit-bias 97+100", model="thinking.gguf")
    t.enter("hello")
    t.wait(lambda lines: lines[-1] == ">" and lines[-2].endswith("(length)]"), "an answer")
    lines = t.lines("-e")
    check(lines[-3] == "\x1b[2m" + "a" * 20, f"the thinking is not dimmed: {lines[-3]!r}")
    check(re.match(r"(\x1b\[[0-9;]*m)*\[\d+ prompt tokens, ", lines[-2]), f"what follows: {lines[-2]!r}")
    check(re.search(r"\x1b\[[0-9;]*m>", lines[-1]), f"the prompt is dimmed too: {lines[-1]!r}")
    t.press("ctrl-d")
    t.expect_shell(0)
    t.start_chat("-n 20 --logit-bias 97+100 --hide-thinking", model="thinking.gguf")
    t.enter("hello")
    lines = t.wait(lambda lines: lines[-2].endswith("(length)]"), "an answer")
    check(lines[-3] == "> hello", f"the thinking is shown: {lines[-3]!r}")
    t.press("ctrl-d")
    t.expect_shell(0)


def takes_a_paste_as_one_message(t):
    t.start_chat(SHORT)
    lines = [f"line {n} of a paste, with ä and 你好" for n in range(20)]
    t.paste("\n".join(lines) + "\n")
    t.wait(lambda screen: "line 19 of" in "".join(screen), "the last line")
    t.press("enter")
    t.answer()
    t.paste("/undo\nis text here")
    t.wait(lambda screen: "is text here" in screen[-1], "the paste")
    t.press("enter")
    t.answer()
    t.check_asked(["\n".join(lines), "/undo\nis text here"])
    t.press("ctrl-d")
    t.expect_shell(0)


def keeps_the_chat_when_a_search_is_given_up(t):
    t.start_chat(SHORT)
    t.enter("hello")
    t.answer()
    t.press("ctrl-r")
    t.wait_for_line(re.compile("bck:.*"))
    t.type("hel")
    t.wait_for_line(re.compile("bck:hel.*"))
    t.press("ctrl-c")
    t.wait_for_line(">")
    t.enter("whole")
    t.answer()
    t.check_asked(["hello", "whole"])
    t.press("ctrl-d")
    t.expect_shell(0)


def says_how_to_end(t):
    t.start_chat(SHORT)
    t.press("ctrl-c")
    t.wait(lambda lines: lines[-1] == ">" and "Ctrl-D or /quit ends" in lines[-2], "a hint")
    t.type("   ")
    t.press("enter")
    t.wait(lambda lines: lines[-1] == ">" and lines[-2] == ">", "nothing sent")
    t.press("ctrl-d")
    t.expect_shell(0)


def wraps_at_words(t):
    words = ["word" + "x" * (n % 7) for n in range(40)] + ["你好你好"] * 12
    t.run("resize-window", "-x", "61", "-y", "40")
    t.start_chat(f"--grammar 'root ::= \"{' '.join(words)}\"'")
    t.enter("hello")
    lines = t.wait(lambda lines: lines[-1] == ">" and "(end_of_text)]" in "".join(lines[-4:]), "an answer")
    begin = lines.index("> hello") + 1
    end = next(i for i, line in enumerate(lines) if line.startswith("[") and i > begin)
    shown = [word for line in lines[begin:end] for word in line.split(" ") if word]
    check(shown == words, f"words are cut: {shown}")
    check(end - begin > 5, f"not wrapped: {lines[begin:end]}")
    t.run("resize-window", "-x", "100", "-y", "40")
    t.press("ctrl-d")
    t.expect_shell(0)


def edits_completes_and_takes_back(t):
    t.start_chat(SHORT)
    t.enter("first")
    t.answer()
    t.enter("secnd")
    t.answer()
    t.type("/ed")
    t.press("tab")
    t.wait_for_line("> /edit")
    t.press("enter")
    t.wait_for_line("> secnd")
    t.press("left", "left")
    t.type("o")
    t.wait_for_line("> second")
    t.press("enter")
    t.answer()
    t.check_asked(["first", "second"])
    t.enter("/undo")
    t.wait(lambda lines: lines[-1] == ">" and "2 messages are left" in lines[-2], "taken back")
    t.check_asked(["first"])
    t.type("/s")
    t.press("tab")
    t.wait(lambda lines: lines[-1] == "> /s" and "/system" in lines[-2] and "/stats" in lines[-2], "a list")
    t.type("et to")
    t.press("tab")
    t.wait_for_line("> /set top_")
    t.press("ctrl-c")
    t.wait_for_line(">")
    t.press("ctrl-d")
    t.expect_shell(0)


def goes_on_in_a_full_context(t):
    t.start_chat(SHORT + " -c 128")
    for n in range(6):
        t.run("clear-history")
        t.enter(f"question {n}")
        t.wait(lambda lines, n=n: lines[-1] == ">" and f"> question {n}" in lines and
               any("(end_of_text)]" in line for line in lines[lines.index(f"> question {n}"):]), "an answer")
    check(sum("is full: the oldest" in line for line in t.lines()) == 1, "not said, or more than once")
    t.press("ctrl-d")
    t.expect_shell(0)


def stops_a_long_prompt_and_goes_on(t):
    with open(t.home + "/long.txt", "w", encoding="utf-8") as file:
        file.write("x" * 60000)
    t.run("resize-window", "-x", "70", "-y", "40")  # the bar has to fit
    t.start_chat("-c 65000 --prefill-chunk 64 " + SHORT)
    t.enter("/file long.txt")
    t.wait(lambda lines: lines[-1] == ">" and "goes behind the next message" in lines[-2], "the file")
    t.enter("read")
    t.wait_until_busy()
    os.kill(t.chat_pid(), signal.SIGINT)
    t.wait(lambda lines: lines[-1] == ">" and "(interrupt)]" in "".join(lines[-3:]), "it to stop")
    check(not any("reading the prompt" in line for line in t.lines()), "the bar is left behind")
    t.check_asked([])
    t.run("resize-window", "-x", "100", "-y", "40")
    t.press("ctrl-d")
    t.expect_shell(0)


def has_colours_unless_told_otherwise(t):
    t.start_chat(SHORT)
    t.enter("hello")
    t.answer()
    check(any("\x1b[2m[" in line for line in t.lines("-e")), "the statistics are not dimmed")
    t.press("ctrl-d")
    t.expect_shell(0)
    t.shell("export NO_COLOR=1")
    t.start_chat(SHORT)
    t.enter("hello")
    t.answer()
    check(not any("\x1b" in line for line in t.lines("-e")), "something is coloured")
    t.press("ctrl-d")
    t.expect_shell(0)


def writes_plain_text_where_nobody_watches(t):
    t.shell(f"$S run -m m.gguf {SHORT} -p hello > plain 2> errors")
    check(re.fullmatch("[a-z]{12}\n", t.read("plain")), f"wrote {t.read('plain')!r}")
    check("\x1b" not in t.read("errors"), f"wrote {t.read('errors')!r}")
    # A chat that is typed but not shown.
    t.type(f"$S run -m m.gguf {SHORT} > plain")
    t.press("enter")
    t.wait_for_line(re.compile(".*Ctrl-D ends"))
    t.type("hello")
    t.press("enter")
    t.wait(lambda lines: lines[-1].endswith("(end_of_text)]"), "an answer")
    t.press("ctrl-d")
    t.wait_for_line("$")
    check(re.fullmatch("[a-z]{12}\n", t.read("plain")), f"wrote {t.read('plain')!r}")


def works_on_a_simple_terminal(t):
    t.shell("export TERM=dumb")
    t.start_chat(SHORT)
    t.enter("hello")
    t.answer()
    t.press("ctrl-d")
    t.expect_shell(0)


def ends_one_answer_like_any_interrupted_program(t):
    command = [t.environment["S"], "run", "-m", t.home + "/m.gguf", *ENDLESS.split(), "-p", "hello"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    check(process.stdout.read(10) == b"a" * 10, "no answer")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    check(re.fullmatch(b"a*\n", out), f"wrote {out[-50:]!r}")
    check(err.endswith(b"(interrupt)]\n"), f"said {err!r}")
    check(process.returncode == -signal.SIGINT, f"ended with {process.returncode}")


CASES = [stops_answers_and_not_the_program, edits_lines, keeps_history_for_the_next_chat,
         keeps_the_chat_when_a_line_is_thrown_away, takes_ctrl_c_at_any_moment, takes_several_lines,
         deletes_whole_characters, sees_a_new_size_and_still_ends, draws_the_line_anew_at_a_new_size,
         goes_on_after_a_pause, gives_the_terminal_back_when_killed,
         ends_at_the_second_ctrl_c_while_it_is_busy, lets_no_output_steer_the_terminal,
         dims_thinking, writes_plain_text_where_nobody_watches,
         ends_one_answer_like_any_interrupted_program, works_on_a_simple_terminal,
         takes_a_paste_as_one_message, keeps_the_chat_when_a_search_is_given_up, says_how_to_end,
         wraps_at_words, edits_completes_and_takes_back, goes_on_in_a_full_context,
         stops_a_long_prompt_and_goes_on, has_colours_unless_told_otherwise]


def make_models(sluice, home):
    """A small model, and two copies with other texts of the same length in them."""
    subprocess.run([sluice, "synth", home + "/m.gguf", "--layers", "1", "--experts", "4",
                    "--experts-used", "2", "--std", "0.05", "--type", "F32"],
                   check=True, stdout=subprocess.DEVNULL)
    with open(home + "/m.gguf", "rb") as file:
        model = file.read()
    for name, old, new in (
            ("evil", b"synthetic qwen3moe F32", b"\x1b[31m\xc2\x9b[31mevil name"),
            ("thinking", b"<|im_start|>assistant\n", b"<|im_start|>\n<think>")):
        check(model.count(old) == 1, f"the model says {old} {model.count(old)} times")
        with open(f"{home}/{name}.gguf", "wb") as file:
            file.write(model.replace(old, new.ljust(len(old))))


def main(sluice, *only):
    if not shutil.which("tmux"):
        print("SKIPPED: tmux is not installed")
        return SKIPPED
    n_failed = 0
    with tempfile.TemporaryDirectory(prefix="sluice_terminal_") as home:
        make_models(sluice, home)
        for case in [case for case in CASES if not only or case.__name__ in only]:
            start = time.monotonic()
            terminal = Terminal(sluice, home, case.__name__)
            try:
                case(terminal)
                print(f"ok      {case.__name__} ({time.monotonic() - start:.1f} s)", flush=True)
            except (Failure, subprocess.SubprocessError, OSError) as failure:
                n_failed += 1
                print(f"FAILED  {case.__name__}: {failure}", flush=True)
            finally:
                terminal.close()
    print(f"{n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
