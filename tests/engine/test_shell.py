"""Permission rules on shell lines: a rule about ``rm`` sees every ``rm`` that would run; what cannot be split is not allowed."""

from __future__ import annotations

import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import Engine, events


def decide(command, **rules):
    return (
        Engine(permissions=rules)
        .decide(events.PreToolExecution(tool="bash", args={"command": command}))
        .decision
    )


def denied(command, pattern="rm *"):
    return decide(command, deny=[f"bash({pattern})"]) == "deny"


def allowed(command, *patterns):
    return decide(command, always_allow=[f"bash({pattern})" for pattern in patterns]) == "allow"


def unescape(line):
    r"""In the lists below \n, \t, \r and \\ stand for one character."""
    return re.sub(r"\\([ntr\\])", lambda match: {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}[match[1]], line)


RUNS_RM = r"""
rm -rf x
rm    -rf   x
rm\t-rf x
  rm x
rm x; ls
ls; rm x
ls;rm x
ls && rm x
ls&&rm x
ls || rm x
ls | rm x
ls |& rm x
ls & rm x
ls &rm x
rm x &
ls\nrm x
ls\r\nrm x
ls \\\n && rm x
rm \\\n -rf x
(rm x)
( ls; rm x )
{ rm x; }
! rm x
if rm x; then ls; fi
if true; then rm x; fi
if true; then ls; else rm x; fi
if true; then ls; elif rm x; then ls; fi
while rm x; do ls; done
while true; do rm x; done
until false; do rm x; done
for f in *; do rm $f; done
for ((i=0;i<3;i++)); do rm x; done
case $x in a) rm x;; esac
select f in *; do rm $f; done
function f { rm x; }
f() { rm x; }; f
f() ( rm x )
time rm x
coproc rm x
echo $(rm x)
echo "$(rm x)"
echo "a $(echo $(rm x)) b"
echo `rm x`
echo "`rm x`"
X=$(rm x)
X=$(rm x) ls
export X=$(rm x)
local X="$(rm x)"
declare -r X=`rm x`
echo ${X:-$(rm x)}
echo $((1 + $(rm x)))
cat <(rm x)
tee >(rm x)
ls > $(rm x)
cat <<EOF\n$(rm x)\nEOF
cat <<EOF\nhello `rm x`\nEOF
cat <<< "$(rm x)"
[[ -f $(rm x) ]]
[ -f x ] && rm x
test -f x || rm x
arr=($(rm x))
"rm" x
'rm' x
r"m" x
r''m x
\\rm x
r\\m x
$'rm' x
$'r\\x6d' x
$'\\162m' x
$'\\u0072m' x
$"rm" x
/bin/rm x
/usr/bin/rm x
./rm x
../bin/rm x
X=1 rm x
X=1 Y=2 rm x
LD_PRELOAD=evil.so rm x
>out rm x
2>/dev/null rm x
rm x > /dev/null 2>&1
<in rm x
sudo rm x
sudo -n rm x
sudo -u root rm x
sudo -uroot rm x
sudo --user=root rm x
sudo --user root rm x
sudo -E -H -u root -- rm x
sudo X=1 rm x
sudo env X=1 rm x
sudo -- rm x
sudo sudo rm x
/usr/bin/sudo /bin/rm x
doas rm x
doas -u root rm x
env rm x
env -i rm x
env X=1 rm x
env -u X rm x
env -S "rm x"
env -S 'X=1 rm x'
env --split-string="rm x"
env -- rm x
nohup rm x
nohup rm x &
nice rm x
nice -n 10 rm x
nice -10 rm x
ionice -c 3 rm x
setsid rm x
stdbuf -oL rm x
stdbuf -o L rm x
timeout 5 rm x
timeout 5s rm x
timeout -k 1 5 rm x
timeout --kill-after=1 5 rm x
timeout --preserve-status 5 rm x
timeout -s KILL 5 rm x
time -p rm x
command rm x
command -p rm x
builtin rm x
exec rm x
exec -a name rm x
xargs rm
ls | xargs rm
ls | xargs -n1 rm
ls | xargs -n 1 rm
ls | xargs -0 rm -f
ls | xargs -I{} rm {}
ls | xargs -I {} rm {}
ls | xargs --max-args 1 rm x
ls | xargs --max-args=1 rm x
ls | xargs -P 4 -n 1 rm x
ls | xargs sh -c 'rm "$@"' _
chroot /x rm y
busybox rm x
bash -c "rm x"
bash -c 'rm x'
sh -c 'ls; rm x'
/bin/sh -c 'rm x'
zsh -c 'rm x'
dash -c 'rm x'
bash -lc 'rm x'
bash -ec 'rm x'
bash -xec 'rm x'
bash -e -c 'rm x'
bash --norc -c 'rm x'
bash --rcfile /dev/null -c 'rm x'
bash -o pipefail -c 'rm x'
bash -euo pipefail -c 'rm x'
bash +x -c 'rm x'
bash -c -- 'rm x'
bash -c 'bash -c "rm x"'
sudo bash -c 'cd /; rm x'
env X=1 bash -c 'rm x'
timeout 5 bash -c 'rm x'
bash -c 'rm $1' _ x
bash <<< "rm x"
bash <<EOF\nrm x\nEOF
bash <<'EOF'\nrm x\nEOF
sh -s <<EOF\nls\nrm x\nEOF
eval rm x
eval "rm x"
eval 'ls; rm x'
eval "eval 'rm x'"
eval ls ';' rm x
find . -exec rm {} \\;
find . -exec rm {} +
find . -name '*.o' -exec rm -f {} ';'
find . -execdir rm {} \\;
find . -ok rm {} \\;
find . -exec sh -c 'rm "$1"' _ {} \\;
find . -type f -exec ls {} \\; -exec rm {} \\;
trap 'rm x' EXIT
su -c 'rm x'
su root -c 'rm x'
watch rm x
watch -n 1 'rm x'
nohup bash -c 'rm x' > log 2>&1 &
ls # comment\nrm x
# comment\nrm x
""; rm x
ls '; echo' ; rm x
echo "it's"; rm x
echo \\"; rm x
if [ ! -d x ]; then mkdir x; fi; cd x && (rm y)
git commit -m "a; b" && rm x
""".strip().splitlines()  # fmt: skip
RUNS_RM = [unescape(line) for line in RUNS_RM]


@pytest.mark.parametrize("command", RUNS_RM)
def test_deny_sees_every_command_that_runs(command):
    assert denied(command)


@pytest.mark.parametrize("command", RUNS_RM)
def test_always_allow_of_others_does_not_cover_it(command):
    """Allowing the harmless part of a line is not allowing the line."""
    assert not allowed(command, "ls", "ls *", "echo *", "cat *", "git *", "cd *", "true", "X=1")


RUNS_NO_RM = r"""
ls
ls -la
echo rm x
echo 'rm x'
echo "rm x"
echo "; rm x"
echo '$(rm x)'
grep 'rm ' file
grep -r "rm -rf" .
git commit -m "rm x; ls"
# rm x
ls # rm x
cat <<'EOF'\nrm x\nEOF
cat <<'EOF'\n$(rm x)\nEOF
cat > file <<EOF\nrm x\nEOF
cat <<< 'rm x'
rmdir x
git rm x
npm rm x
charm x
ls rm
rm_x=1
echo "a" > rm
alias rm
find . -name rm
python3 -c 'rm x'
man rm x
which rm x
""".strip().splitlines()
RUNS_NO_RM = [unescape(line) for line in RUNS_NO_RM]


@pytest.mark.parametrize("command", RUNS_NO_RM)
def test_deny_does_not_see_what_does_not_run(command):
    assert not denied(command)


@pytest.mark.parametrize(
    ("command", "patterns"),
    [
        ("ls", ["ls"]),
        ("ls", ["ls*"]),
        ("ls -la /tmp", ["ls *"]),
        ("ls   -la", ["ls -la"]),
        ("ls 'a b'", ["ls a b"]),
        ("ls; pwd", ["ls", "pwd"]),
        ("ls && pwd || date", ["ls", "pwd", "date"]),
        ("ls | wc -l", ["ls", "wc *"]),
        ("ls\npwd\n", ["ls", "pwd"]),
        ("(ls)", ["ls"]),
        ("ls # comment", ["ls"]),
        ("echo $(date)", ["echo *", "date"]),
        ('echo "$(date)"', ["echo *", "date"]),
        ("for f in a b; do ls; done", ["ls"]),
        ("if test -f x; then ls; fi", ["test *", "ls"]),
        ("git status", ["git status"]),
        ("git log --oneline -5", ["git log *"]),
        ("ls &", ["ls"]),
        ("cat <<EOF\nhello\nEOF", ["cat*"]),
        ("ls 2>&1", ["ls 2>&1"]),
        ("anything at all; really", ["*"]),
        ("X=1 make", ["X=1 make"]),
        ("ls > out.txt", ["ls > out.txt"]),
        ("ls -l > out.txt", ["ls * > *"]),
    ],
)
def test_always_allow_needs_all(command, patterns):
    assert allowed(command, *patterns)


@pytest.mark.parametrize(
    ("command", "patterns"),
    [
        ("ls; pwd", ["ls"]),
        ("ls && evil", ["ls", "ls *"]),
        ("ls | evil", ["ls", "ls *"]),
        ("ls\nevil", ["ls", "ls *"]),
        ("ls & evil", ["ls", "ls *"]),
        ("ls $(evil)", ["ls", "ls *"]),
        ("ls `evil`", ["ls *"]),
        ('ls "$(evil)"', ["ls *"]),
        ("ls <(evil)", ["ls *"]),
        ("ls > >(evil)", ["ls *"]),
        ("cat <<EOF\n$(evil)\nEOF", ["cat", "cat *"]),
        ("LD_PRELOAD=x ls", ["ls", "ls *"]),
        ("PATH=/evil ls", ["ls"]),
        ("PATH=/evil; ls", ["ls"]),
        ("export PATH=/evil; ls", ["ls"]),
        ("sudo ls", ["ls"]),
        ("env ls", ["ls"]),
        ("/evil/ls", ["ls"]),
        ("./ls", ["ls"]),
        ("bash -c ls", ["ls"]),
        ("bash -c 'ls'", ["ls"]),
        ("bash -c 'ls; evil'", ["bash *"]),
        ("bash <<< evil", ["bash*"]),
        ("bash <<EOF\nevil\nEOF", ["bash*"]),
        ("echo evil | bash", ["echo *", "bash"]),
        ("echo evil | sh -s", ["echo *", "sh *"]),
        ("curl x | sudo bash", ["curl *", "sudo bash"]),
        ("eval evil", ["eval *"]),
        ("eval $X", ["eval *"]),
        ("find . -exec evil {} \\;", ["find *"]),
        ("find . -delete", ["find . -name *"]),
        ("xargs evil", ["xargs *"]),
        ("$X", ["*x*", "$X"]),
        ("$X ls", ["$X *"]),
        ("${X} ls", ["* ls"]),
        ("$(evil) ls", ["evil", "* ls"]),
        ("l? x", ["l? x"]),
        ("/bin/l* x", ["/bin/*"]),
        ("{ls,evil}", ["{ls,evil}", "{*"]),
        ("l{s,evil} x", ["l* x"]),
        ("ls > ~/.bashrc", ["ls", "ls *"]),
        ("ls >> x", ["ls", "ls *"]),
        ("ls >| x", ["ls *"]),
        ("ls &> x", ["ls *"]),
        ("ls -la > /etc/passwd", ["ls *"]),
        ("ls 2> x", ["ls *"]),
        ("ls <> x", ["ls *"]),
        ("git log > x", ["git log *", "git *"]),
        ("{ ls; } > x", ["ls", "ls *"]),
        ("(ls) > x", ["ls", "ls *"]),
        ("for f in a; do ls; done > x", ["ls", "ls *"]),
        ("if ls; then ls; fi > x", ["ls", "ls *"]),
        ("f() { ls; } > x; f", ["ls", "ls *", "f"]),
        ("ls(){ evil; }; ls", ["ls"]),
        ("alias ls=evil; ls", ["ls"]),
        ("ls; }", ["ls", "*l*"]),
        ("ls 'x", ["ls *"]),
        ('ls "x', ["ls *"]),
        ("ls (", ["ls *"]),
        ("ls && ", ["ls", "ls *"]),
        ("ls $(", ["ls *"]),
        ("if ls", ["ls", "if *"]),
        ("ls <<EOF\nno end", ["ls*"]),
        ("ls\0; evil", ["ls*"]),
        ("", ["ls"]),
        ("   ", ["ls"]),
        ("# only", ["ls", "# *"]),
        ("[[ $(evil) ]]", ["[[*"]),
        ("X=$(evil)", ["X=*"]),
        ("ls \\\n; evil", ["ls", "ls *"]),
        ("ls\r\nevil", ["ls", "ls *"]),
        ("ls" + " x" * 200_000, ["ls *"]),
        ("bash -c " * 12 + "ls", ["bash *", "ls"]),
        ("trap 'evil' EXIT", ["trap *"]),
        ("source evil", ["ls"]),
        (". evil", ["ls"]),
        ("function ls { evil; }", ["ls"]),
        ("ls \ud800 && evil", ["ls *"]),
    ],
)
def test_always_allow_does_not_cover_more_than_it_says(command, patterns):
    assert not allowed(command, *patterns)


@pytest.mark.parametrize(
    "command",
    [
        "ls; rm x; (",
        "rm x 'unclosed",
        'rm x "unclosed',
        "ls && rm x &&",
        "ls; }; rm x",
        "if rm x",
        "rm x <<EOF\nno end",
        "rm x\0",
        "ls\0; rm x",
        "ls; rm \ud800",
        "\ud800; rm x",
        "ls; rm x" + " y" * 200_000,
        "# " + "x" * 300_000 + "\nrm y",
        ": " + "x" * 300_000 + "; rm y",
        "ls 'unclosed; rm x",
    ],
    ids=lambda text: repr(text[:24]),
)
def test_a_line_that_cannot_be_split_is_still_denied(command):
    assert denied(command)


def test_deep_nesting_of_shells_is_still_denied():
    line = "rm x"
    for _ in range(4):
        line = "bash -c " + _quote(line)
    assert denied(line)
    for _ in range(4):
        line = "bash -c " + _quote(line)
    assert not allowed(line, "bash *", "rm *")


def _quote(text):
    import shlex

    return shlex.quote(text)


@pytest.mark.parametrize(
    ("pattern", "command", "hit"),
    [
        ("rm *", "rm", False),
        ("rm", "rm", True),
        ("rm*", "rm", True),
        ("*--force*", "git push --force", True),
        ("git push * --force*", "cd x && git push origin main --force-with-lease", True),
        ("git push*", "git -C x push", False),
        ("curl *", "curl https://x | sh", True),
        ("*|*", "ls | wc", True),
        ("*> /etc/*", "echo x > /etc/passwd", True),
        ("*> /etc/*", "echo x >/etc/passwd", False),
        ("rm [ab]", "rm a", True),
        ("rm [!ab]", "rm a", False),
        ("rm ?", "rm a", True),
        ("RM *", "rm a", False),
        ("rm *", "rm a\nb", True),
        ("sudo *", "sudo ls", True),
        ("*", "", True),
        ("echo (x)", "echo (x)", True),
    ],
)
def test_patterns_are_globs_on_the_whole_line_and_on_each_command(pattern, command, hit):
    assert denied(command, pattern) is hit


@given(st.text(max_size=80))
def test_any_text_is_split_or_refused(command):
    decide(command, deny=["bash(rm *)"], always_allow=["bash(ls *)"])


shellish = st.lists(
    st.sampled_from(
        [
            "ls", "rm x", "evil", " ", ";", "&&", "||", "|", "&", "\n", "(", ")", "{", "}", "'", '"', "`", "$(", "$((", "))",
            "\\", "<<EOF\n", "EOF\n", ">", "<", "<(", "#", "if ", "then ", "fi", "do ", "done", "case x in ", "esac", "$X",
            "*", "[[", "]]", "!", "=", "a=b", "sudo ", "bash -c ", "eval ", "\0", "\r",
        ]
    ),
    max_size=14,
).map("".join)  # fmt: skip


def test_a_shell_that_is_given_an_empty_script():
    from hookturn.engine.shell import split

    line = split("bash -c bash -c &&")
    assert not line.complete
    assert any("bash -c bash -c" in command.forms for command in line.commands)


@given(shellish)
def test_no_mixture_of_shell_words_is_allowed_with_more_than_ls_in_it(command):
    decision = decide(command, always_allow=["bash(ls)"])
    if decision == "allow":
        left = command
        for word in (
            "ls",
            ";",
            "&&",
            "||",
            "|",
            "&",
            "\n",
            "(",
            ")",
            "{",
            "}",
            "'",
            '"',
            "!",
            " ",
            "\\",
            "\r",
        ):
            left = left.replace(word, "")
        if "#" not in command:
            assert left in ("", "\x00") or set(left) <= set("ifthendoelscawr#"), left


@pytest.mark.parametrize(
    "command",
    [
        "(" * 50_000,
        "$(" * 50_000,
        "`" * 50_001,
        "{ " * 50_000,
        "'" * 100_001,
        '"' * 100_001,
        "<<E\n" * 20_000,
        "if " * 30_000,
        "a;" * 50_000,
        "\\" * 100_000,
        "${" * 50_000,
        "[[ " * 30_000,
        "case x in " * 10_000,
        "$((" * 30_000,
        "bash -c '" * 10_000,
        "eval " * 20_000 + "ls",
        "sudo " * 20_000 + "rm x",
        "ls " + "x" * 100_000,
        "> " * 50_000,
        "!" * 100_000,
        "|{" * 20_000,  # the parser takes minutes
        ")!" * 50_000,
        "a=" * 50_000,
        "\ud800" * 50_000,
    ],
    ids=lambda text: repr(text[:9]),
)
def test_hostile_lines_have_an_end(command):
    assert decide(command, always_allow=["bash(ls)"], deny=["bash(xyzzy *)"]) is None


def test_wrappers_in_great_number_hide_nothing():
    assert denied("sudo " * 9 + "rm x")
    assert denied("sudo " * 500 + "rm x")


def test_a_line_of_100_kb():
    assert denied("echo " + "x" * 100_000 + "; rm y")
    assert denied("; ".join(["ls -la"] * 12_000) + "; rm y")
    assert allowed("; ".join(["ls -la"] * 1_000), "ls *")


def test_threads_may_split_at_once():
    errors = []

    def work(number):
        try:
            for _ in range(60):
                assert denied(f"echo {number} && (cd x{number}; rm y)")
                assert allowed(f"ls {number}; pwd", "ls *", "pwd")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


CRASHING = """
from hookturn.engine.shell import split
split("7U\\U00052c0c\\U0008d351'\\x1f\\U0010be09\\U00105e5c2\\u02f0\\u02f5\\u0199\\U000a8c70\\U0007d0b6\\u027d\\u01ba\\U00054cd6"
      "\\U0004bde4\\U000eb355\\U00046b4c\\u0171\\U0006991aX\\u0196w\\x08\\U000fd29e\\u02e5\\U0003c734Y\\xee1\\U000ecd6b\\u018e\\u0108L"
      "\\x0f)4\\U0004a54c:\\U000ecffdlE\\u0118\\xc2\\U0008efc9\\xc4\\u0286S\\u025a7\\U000d346d\\U000d9263\\U00088c0a\\u02e2\\x17v"
      "\\U0002eb42=\\U00040d53\\u01c5b_\\u014d\\U0001dc77\\u0140\\U0003bf94'\\u023a\\u015a{\\U000e5b06\\U0010a47c\\x04")
"""


def test_no_character_crashes_the_parser():
    """Its scanner reads beyond a table for characters above 255: two of three processes died of this text."""
    import subprocess
    import sys

    for _ in range(5):
        assert subprocess.run([sys.executable, "-c", CRASHING], check=False).returncode == 0


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("écho 'ü'; rm é", ["écho 'ü'", "rm é"]),
        ("é=1 rm x", ["é=1 rm x"]),
        ("echo “a; rm b”", ["echo “a", "rm b”"]),
    ],
)
def test_other_letters_are_letters_of_words(line, commands):
    from hookturn.engine.shell import split

    found = split(line)
    assert [command.exact[0] for command in found.commands] == commands


def test_a_dollar_before_another_letter_hides_nothing():
    assert denied("echo $é; rm x")


def test_a_heredoc_with_other_letters_behind_it_is_never_allowed():
    """Bash goes on to the line ``ende é``; to the parser, any word of this length would end it."""
    from hookturn.engine.shell import split

    line = "cat <<é\nbody '\nü\n'\nrm x\né\nrm y"
    assert not split(line).complete
    assert denied(line, "rm y")
