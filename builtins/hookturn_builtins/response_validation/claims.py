"""Reads what an answer claims to have done: files that it names as written or read, commands that it names as run.

It is careful: a claim is a statement about the past, in the first person or without a person, about a name in
backticks, in a link, or that can be nothing else. Plans, advice, negations, quotations and code samples are none.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_TEXT = 200_000
MAX_LINE = 2_000
MAX_CLAIMS = 50
"""Claims of one answer that are looked at."""

_I = r"(?:i|we)(?:['’]ve|[ ]have)?[ ](?:(?:also|just|now|then|already|successfully|first|finally|therefore)[ ]){0,2}"
_OPENING = (
    r"(?:(?:and|then|also|next|first|second|finally|so|ok|okay|done|great|now|successfully)[,:!.]?[ ]){0,3}"
)
_NOT_REALLY = re.compile(
    r"\b(?:if|when|whenever|once|before|until|unless|had|whether|wish|pretend|assume|suppose|imagine|say|said)[ ]?$",
    re.I,
)


def _english(verbs: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^{_OPENING}(?:{_I})?|\b{_I})(?:{verbs})\b", re.I)


_WROTE = (
    _english(
        "created|added|wrote|written|updated|modified|edited|changed|fixed|generated|saved|implemented|refactored|"
        "rewrote|rewritten|adjusted|extended|patched|made[ ](?:the[ ]following|these|those)[ ](?:changes|edits)"
    ),
    # French, Spanish, Portuguese, Italian, Russian; in these languages the verb tells the person.
    re.compile(
        r"\bj['’]ai[ ](?:aussi[ ]|également[ ]|bien[ ])?(?:créé|ajouté|modifié|mis[ ]à[ ]jour|écrit|édité|généré|enregistré|corrigé)\b|"
        r"\b(?:he|hemos)[ ](?:creado|añadido|actualizado|modificado|escrito|editado|generado|guardado|corregido)\b|"
        r"\b(?:creé|añadí|actualicé|modifiqué|escribí|edité|generé|corregí)\b|"
        r"\b(?:criei|adicionei|atualizei|modifiquei|escrevi|editei|alterei|gerei|corrigi)\b|"
        r"\bho[ ](?:creato|aggiunto|aggiornato|modificato|scritto|generato|salvato|corretto)\b|"
        r"\b(?:создал|добавил|обновил|изменил|записал|исправил|отредактировал)а?\b",
        re.I,
    ),
    re.compile(
        r"(?:我|已|已经|並|并)(?:已|已经|經)?(?:创建|建立|新建|添加|更新|修改|编写|写入|生成|修复|編輯|修正)了?"
    ),
)
_READ = (_english("read|reviewed|opened|examined|inspected"),)
_RAN = (
    _english(
        "(?:re-?)?ran(?![ ](?:out|into|over|low|across)\\b)|executed|re-?executed|launched|invoked|"
        "(?:verified|checked|tested|validated|confirmed)[ ](?:it[ ]|this[ ]|that[ ]|everything[ ])?(?:with|using|via|by[ ]running)"
    ),
    re.compile(
        r"\b(?:i|we)(?:['’]ve|[ ]have)[ ](?:(?:also|just|now|already|successfully)[ ]){0,2}(?:re-?)?run\b",
        re.I,
    ),
    re.compile(
        r"\bj['’]ai[ ](?:exécuté|lancé)\b|\b(?:he|hemos)[ ](?:ejecutado|corrido)\b|\bejecuté\b|\b(?:executei|rodei)\b|"
        r"\bho[ ](?:eseguito|lanciato)\b|\b(?:запустил|выполнил)а?\b",
        re.I,
    ),
    re.compile(r"(?:我|已|已经)(?:已|已经)?(?:运行|执行|運行|執行)了?"),
)

# In these languages the verb comes after what it is about.
_WROTE_LAST = re.compile(
    r"(?P<de>\b(?:ich[ ]habe|habe[ ]ich)\b(?P<about>[^\n]{1,300}?)\b"
    r"(?:erstellt|angelegt|aktualisiert|geändert|geschrieben|bearbeitet|hinzugefügt|angepasst|erzeugt|gespeichert|ergänzt)\b)"
    r"|(?P<ja>`[^`\n]{1,300}`[^`\n。]{0,20}?(?:を|に)[^`\n。]{0,20}?(?:作成|更新|追加|変更|修正|編集|生成|保存)(?:しました|した))"
    r"|(?P<ko>`[^`\n]{1,300}`[ ]?(?:파일)?(?:을|를|에|에는)[^`\n.]{0,20}?(?:생성|추가|수정|업데이트|작성|변경)(?:했|하였))",
    re.I,
)
_RAN_LAST = re.compile(
    r"(?P<de>\b(?:ich[ ]habe|habe[ ]ich)\b(?P<about>[^\n]{1,300}?)\b(?:ausgeführt|laufen[ ]lassen|gestartet)\b)"
    r"|(?P<ja>`[^`\n]{1,300}`[ ]?(?:を)[^`\n。]{0,10}?実行(?:しました|した))"
    r"|(?P<ko>`[^`\n]{1,300}`[ ]?(?:을|를)[^`\n.]{0,10}?실행(?:했|하였))",
    re.I,
)

_FILE = re.compile(
    r"\[[^\]\n]{0,200}\]\((?P<link>[^)\s]{1,300})\)"
    r"|`(?P<ticks>[^`\n]{1,300})`"
    r"|(?<![\w/`.@:-])(?P<bare>(?:\.{1,2}/)?(?:[\w-][\w.-]{0,60}/){1,10}[\w.-]{1,80}\.[A-Za-z]{1,6}"
    # Without a slash and without backticks only what is nothing but a file.
    r"|[\w-]{2,60}(?:\.[\w-]{1,20})?\.(?:py|pyi|ipynb|jsx?|tsx?|mjs|vue|json|ya?ml|toml|md|rst|txt|html|s?css|sh|sql|csv|java|kt|rb|php|cpp|hpp))"
    r"(?![\w/]|\.\w)"
)
_SHELL = re.compile(
    r"`(?P<ticks>[^`\n]{1,300})`|(?<![\w/`.-])(?P<bare>"
    r"(?:npm|yarn|pnpm|bun|cargo|go|make|mvn|gradle|dotnet|composer|mix)[ ](?:run[ ])?(?:test|tests|build|check|lint|vet|clippy|fmt|ci|typecheck)"
    r"|(?:pytest|tox|nox|ruff|mypy|pyright|flake8|pylint|eslint|tsc|vitest|jest|ctest|rspec|rubocop|phpunit|shellcheck|golangci-lint))"
    r"(?![\w/-]|\.\w)"
)
# What may stand between two names of one list, and what ends the claim before a name.
_AND = re.compile(
    r"[ ]?(?:\([^()`\n]{0,60}\))?(?:,|[ ]?&|[ ]and|,[ ]and|[ ]und|[ ]et|[ ]y|[ ]e|、|和|[ ]и)?[ ]{0,2}(?:the[ ])?"
)
_STOP = re.compile(
    r"\b(?:not|never|no|nor|without|instead|rather|than|like|from|would|should|could|can|cannot|will|might|may|must|if|unless|so|"
    r"because|which|that|when|where|similar|e\.g|such|example|nothing|none|nicht|kein\w*|pas|não|non|не)\b|n['’]t\b|不|没|ない|않"
    r"|\bto[ ](?!the\b|a\b|an\b|your\b|our\b|this\b|each\b|both\b|all\b|my\b|its\b|file\b)(?=\w)",
    re.I,
)
_HOP = re.compile(r"[ ](?:[\w ,'-]{0,60}[ ])?(?:to|in|into|at|under)[ ][\w '-]{0,30}")
_DOUBT = re.compile(
    r"\b(?:not|no|never|none|missing|absent|without|couldn|tried|failed|fails|empty)\b|n['’]t\b|404|不|没|не\b",
    re.I,
)
_GONE = re.compile(
    r"\b(?:remov|delet|renam|mov(?:ed|ing)|clean|revert|undid|undone|dropp|discard|temporar|gelöscht|entfernt|supprim|borr|elimin|удал)|删|削除",
    re.I,
)
_BULLET = re.compile(r"[ \t]{0,12}(?:[-*+•✅✓✔☑]|\d{1,3}[.)])[ \t]{1,4}(?:\[[xX ]\][ ])?")
_SENTENCE = re.compile(r"(?<=[.!?;:])\s{1,4}|(?<=[。！？；])|[ ][–—][ ]|[ ]-[ ]")


def files(text: str) -> list[str]:
    """Return the files that an answer says it wrote or read, as it names them.

    Parameters:
        text: the answer, as Markdown.
    """
    gone: list[str] = []
    found: dict[str, None] = {}
    for name in _claimed(text, _WROTE, _WROTE_LAST, gone, _FILE, _path, reads=True):
        found[name] = None
        if len(found) == MAX_CLAIMS:
            break
    away = "\n".join(gone)
    return [name for name in found if name.rpartition("/")[2] not in away]


def commands(text: str) -> list[str]:
    """Return the commands that an answer says it ran.

    Parameters:
        text: the answer, as Markdown.
    """
    found: dict[str, None] = {}
    for name in _claimed(text, _RAN, _RAN_LAST, [], _SHELL, _command, reads=False):
        found[name] = None
        if len(found) == MAX_CLAIMS:
            break
    return list(found)


def _claimed(
    text: str,
    verbs: tuple[re.Pattern[str], ...],
    last: re.Pattern[str],
    gone: list[str],
    tokens: re.Pattern[str],
    judge: Callable[[re.Match[str]], str],
    *,
    reads: bool,
) -> Iterator[str]:
    listing = False
    for line in _prose(text[:MAX_TEXT]):
        if reads and _GONE.search(line):
            gone.append(line)
        bullet = _BULLET.match(line)
        body = (line[bullet.end() :] if bullet else line).replace("**", "").strip()
        if listing and bullet:
            token = tokens.match(body)
            name = judge(token) if token else ""
            if name:
                yield name
        elif body:
            listing = False
        if not body.endswith(":") and not tokens.search(body):
            continue  # most lines name nothing
        for sentence in _SENTENCE.split(body):
            if not sentence:
                continue
            for verb in verbs:
                match = verb.search(sentence)
                if match is None or _NOT_REALLY.search(sentence, max(0, match.start() - 30), match.start()):
                    continue
                names = list(_listed(sentence[match.end() :], tokens, judge))
                yield from names
                # "I created these files:", and a list of them
                listing = listing or (not names and body.endswith(":") and sentence == body)
            if reads and not _DOUBT.search(body):
                for verb in _READ:
                    match = verb.search(sentence)
                    if match and not _NOT_REALLY.search(sentence, max(0, match.start() - 30), match.start()):
                        yield from _listed(sentence[match.end() :], tokens, judge)
            match = last.search(sentence)
            if match is not None:
                about = match["about"] or match[0]
                if not _STOP.search(tokens.sub("", about)):
                    yield from (name for token in tokens.finditer(about) if (name := judge(token)))


def _prose(text: str) -> Iterator[str]:
    """Give the lines of a text that are neither code samples nor quotations nor tables."""
    fence = ""
    for line in text.splitlines():
        plain = line.lstrip()
        if fence:
            if plain.startswith(fence):
                fence = ""
        elif plain.startswith(("```", "~~~")):
            fence = plain[:3]
        elif not plain.startswith((">", "|")):
            yield line[:MAX_LINE]


def _listed(rest: str, tokens: re.Pattern[str], judge: Callable[[re.Match[str]], str]) -> Iterator[str]:
    """Give the names that a verb is about: the first list of them after it."""
    at = 0
    hops = 0
    begun = False
    for token in tokens.finditer(rest[:400]):
        gap = rest[at : token.start()]
        if begun:
            if not _AND.fullmatch(gap):
                return
        elif (hops and not _HOP.fullmatch(gap)) or len(gap) > 100 or _STOP.search(gap):
            return
        name = judge(token)
        if name:
            begun = True
            yield name
        elif begun or hops == 2:
            return
        else:
            hops += 1  # "added `f` and `g` to `x.py`"
        at = token.end()


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_EXTENSIONS = _set(
    "py pyi ipynb js jsx mjs cjs ts tsx mts cts vue svelte json jsonl json5 yaml yml toml ini cfg conf md mdx rst txt csv tsv html htm css "
    "scss sass less xml svg sh bash zsh fish ps1 bat go rs java kt kts scala c h cc cpp cxx hpp hh cs fs rb php pl lua r jl ex exs erl hs "
    "ml clj dart swift m mm sql graphql proto tf hcl gradle lock patch diff dockerfile nix zig sol tex"
)
_PRODUCTS = _set(
    "node.js next.js vue.js nuxt.js express.js react.js d3.js three.js p5.js chart.js nest.js deno.js asp.net"
)
_NAMES = _set(
    "Makefile Dockerfile LICENSE README CHANGELOG Procfile Gemfile Rakefile Justfile Jenkinsfile .gitignore"
)
_PATH = re.compile(r"[\w./+@-]+")
_PLACE = re.compile(r"(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?|::[\w.:\[\]-]+)$")


def _path(token: re.Match[str]) -> str:
    """Return the path that a token names, or an empty text when it need not be one."""
    name = (token["link"] or token["ticks"] or token["bare"]).strip()
    name = _PLACE.sub("", name).replace("\\", "/")
    if not _PATH.fullmatch(name) or "..." in name or "//" in name or name.startswith(("@", "-")):
        return ""
    parts = name.split("/")
    base = parts[-1]
    stem, dot, ending = base.rpartition(".")
    if base not in _NAMES and not (dot and stem and ending.lower() in _EXTENSIONS):
        return ""
    if "path/to" in name or "your" in name.lower() or base.lower() in _PRODUCTS:
        return ""
    first = parts[0]
    if len(parts) > 1 and "." in first.strip("."):  # the name of a machine
        return ""
    return name


_PROGRAMS = _set(
    "pytest tox nox ruff mypy pyright flake8 pylint black isort python pip uv poetry pdm hatch npm npx yarn pnpm bun node deno tsc "
    "eslint prettier jest vitest mocha playwright cypress cargo rustc clippy go gofmt golangci-lint make cmake ctest ninja bazel mvn "
    "gradle gradlew dotnet rake rspec bundle rubocop phpunit composer git docker docker-compose kubectl helm terraform ansible curl wget "
    "grep rg sed awk find ls cat tsx vite webpack next shellcheck pre-commit bandit coverage mix swift xcodebuild just task"
)
_TWO_WORDS = _set(
    "npm yarn pnpm bun cargo go git make docker kubectl helm terraform dotnet mvn gradle gradlew composer bundle just task uv poetry "
    "pdm hatch pip pre-commit mix swift deno rake"
)
_BEFORE = _set("sudo env time nice nohup exec command npx bunx uvx run exec -- dlx rtk")
_WORD = re.compile(r"[^\s|&;<>()'\"`]+")
_WELL_FORMED = re.compile(r"[\w./+-][\w./+:-]*")


def _command(token: re.Match[str]) -> str:
    """Return the command line that a token names, or an empty text when it may be something else."""
    line = (token["ticks"] or token["bare"]).strip()
    first = key_words(line)[:1]
    if not first or not _WELL_FORMED.fullmatch(first[0]):
        return ""
    known = first[0] in _PROGRAMS
    plain = line.startswith("./") or (" " in line and re.search(r"\s--?\w", line) is not None)
    return line if known or plain else ""


def words(command: str) -> set[str]:
    """Return the words of a command line, paths also by their last part.

    Parameters:
        command: a command line; how it is quoted does not matter.
    """
    found = set()
    for word in _WORD.findall(command):
        word = word[:200]
        found.add(_plain(word))
        found.add(_plain(word.rpartition("/")[2]))
    return found - {""}


def key_words(command: str) -> list[str]:
    """Return the words that must have stood in a command that was run: the last program's name and its sub-command."""
    simple = re.split(r"&&|\|\||[;|\n]", command)[-1] if command else ""
    given = [word for word in _WORD.findall(simple) if not re.match(r"[A-Za-z_]\w*=", word)]
    while len(given) > 1 and (
        given[0] in _BEFORE
        or (given[1] in ("run", "exec") and given[0] in ("uv", "poetry", "pdm", "hatch", "bundle"))
    ):
        given = given[1:] if given[0] in _BEFORE else given[2:]
    if len(given) > 2 and re.fullmatch(r"python[\d.]*|py", given[0]) and given[1] == "-m":
        given = given[2:]
    if not given:
        return []
    program = _plain(given[0].rpartition("/")[2])
    rest = [word for word in given[1:] if word not in ("run", "--")]
    if program in _TWO_WORDS and rest and re.fullmatch(r"[a-z][a-z:-]*", rest[0]):
        return [program, rest[0]]
    return [program]


def _plain(word: str) -> str:
    return re.sub(r"^(python|pip|node)[\d.]+$", r"\1", word.strip("\"'`,"))


_RUNS_OTHERS = re.compile(
    r"(?:^|[|&;(\s])(?:make|just|task|tox|nox|pre-commit|docker|podman|ssh|rake|gradlew?|mvnw?|ninja|bazel|hatch|poe|invoke|act|nix|xargs|parallel|"
    r"eval|source|(?:ba|z|da|k|fi)?sh|python[\d.]*\s+(?!-)\S+|node\s+(?!-)\S+|(?:npm|yarn|pnpm|bun)\s+(?!i\b|install\b|ci\b|add\b|ls\b|list\b|init\b|view\b|--?v)\S+|"
    r"\.{0,2}/\S+|composer\s+\S+|mix\s+\S+)(?=$|[\s;&|)])"
)


def runs_others(command: str) -> bool:
    """Tell whether a command may run other programs that its words do not show: a script, a build tool."""
    return _RUNS_OTHERS.search(command[:4000]) is not None
