"""Read a report's files back, each by the rules of its format."""

import re
from html.parser import HTMLParser
from typing import NamedTuple

VOID = {"meta", "link", "br", "hr", "img", "use", "path", "rect"}


class Shown(NamedTuple):
    text: str
    detail: str
    marks: tuple
    strong: bool


class Page(HTMLParser):
    """Tables by id, every attribute, every id, and whether the elements nest."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.tables, self.attributes, self.ids, self.tags = {}, [], [], set()
        self.open, self.words = [], []
        self.headings, self.captions = {}, {}
        self.feed(source)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_startendtag(self, tag, attrs):
        self._note(tag, attrs)

    def handle_starttag(self, tag, attrs):
        self._note(tag, attrs)
        if tag in VOID and "svg" not in [each for each, _ in self.open]:
            return
        values = dict(attrs)
        self.open.append((tag, values))
        if tag == "table":
            self.table = self.tables.setdefault(values["id"], [])
            self.headings[values["id"]] = []
        elif tag == "tr":
            self.row = []
        elif tag in ("td", "th"):
            self.cell = {"text": "", "detail": "", "marks": [], "strong": False}
            if tag == "th":
                assert values["scope"] in ("row", "col")
                self.scope = values["scope"]

    def handle_endtag(self, tag):
        name, _ = self.open.pop()
        assert name == tag, f"</{tag}> closes <{name}>"
        if tag in ("td", "th"):
            words = {key: " ".join(self.cell[key].split()) for key in ("text", "detail")}
            self.row.append(
                Shown(
                    words["text"], words["detail"], tuple(self.cell["marks"]), self.cell["strong"]
                )
            )
        elif tag == "tr":
            if self._in("thead"):
                self.headings[self._table()] = [each.text for each in self.row]
            else:
                self.table.append(self.row)

    def handle_data(self, data):
        self.words.append(data)
        if self._in("caption"):
            name = self._table()
            self.captions[name] = self.captions.get(name, "") + data.strip()
        if not (self._in("td") or self._in("th")):
            return
        classes = [values.get("class") for _, values in self.open]
        if "mark" in classes:
            self.cell["marks"].append(data)
        else:
            self.cell["detail" if "detail" in classes else "text"] += data
            self.cell["strong"] |= self._in("strong")

    def _note(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]

    def _in(self, tag):
        return tag in [name for name, _ in self.open]

    def _table(self):
        return next(values["id"] for name, values in self.open if name == "table")


def markdown_tables(source):
    """Tables by title; cells still escaped."""
    tables, title = {}, None
    for line in source.splitlines():
        if line.startswith("### "):
            title = unescape_markdown(line[4:])
        elif line.startswith("|") and not line.startswith("|---"):
            cells = re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]
            tables.setdefault(title, []).append([cell.strip() for cell in cells])
    return tables


def unescape_markdown(text):
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)


def markdown_cell(cell):
    found = re.fullmatch(
        r"(\*\*)?(.*?)(\*\*)?( (?:\\\[|\()(?!F\d).*?)?( \((F\d+(?:, F\d+)*)\))?", cell
    )
    marks = tuple(found[6].split(", ")) if found[6] else ()
    text, detail = unescape_markdown(found[2]), unescape_markdown((found[4] or "").strip())
    return Shown(text, detail, marks, bool(found[1]))


COMMANDS = {
    r"\textbackslash{}": "\\", r"\textasciicircum{}": "^", r"\textasciitilde{}": "~",
    r"\textless{}": "<", r"\textgreater{}": ">", r"\textbar{}": "|", r"\textquotedbl{}": '"',
    r"\textquotesingle{}": "'", r"\textasciigrave{}": "`", "{-}": "-", "{[}": "[", "{]}": "]",
    r"\ldots{}": "\u2026", r"\allowbreak{}": "",
    r"\{": "{", r"\}": "}", r"\$": "$", r"\&": "&", r"\#": "#", r"\%": "%", r"\_": "_",
}  # fmt: skip
_COMMAND = re.compile("|".join(re.escape(each) for each in COMMANDS))


def unescape_latex(text):
    return _COMMAND.sub(lambda found: COMMANDS[found[0]], text)


def latex_rows(source):
    """The cells of a table, still escaped, line by line."""
    body = source.split("\\midrule\n")[1].split("\\bottomrule")[0]
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)&", line.removesuffix(" \\\\"))]
        for line in body.strip().splitlines()
    ]


def latex_cell(cell, below=""):
    marks = re.search(r"\\textsuperscript\{([^}]*)\}", cell)
    beside = re.search(r"\{\\scriptsize (.*)\}$", cell or "")
    detail = re.fullmatch(r"\{\\scriptsize (.*)\}", below) if below else beside
    text = re.sub(r" ?\{\\scriptsize .*\}$", "", re.sub(r"\\textsuperscript\{[^}]*\}", "", cell))
    strong = re.fullmatch(r"\\textbf\{(.*)\}", text)
    return Shown(
        unescape_latex(strong[1] if strong else text),
        unescape_latex(detail[1]) if detail else "",
        tuple(marks[1].split(" ")) if marks else (),
        bool(strong),
    )


def check_latex(source):
    """Fail where LaTeX would: unbalanced groups or environments, bare specials, wrong columns."""
    bare = re.sub(r"(?m)(?<!\\)%.*$", "", source)
    plain = re.sub(r"\\[\\{}$&#%_]", "", bare)
    depth = 0
    for letter in plain:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        assert depth >= 0, "a group is closed that was never opened"
    assert depth == 0, "a group is never closed"
    stack = []
    for kind, name in re.findall(r"\\(begin|end)\{([^}]*)\}", bare):
        if kind == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert stack == []
    assert not re.search(r"(?<!\\)[$^~]", plain), "a bare special"
    paths = re.sub(r"\\(label|input|includegraphics)(\[[^\]]*\])?\{[^}]*\}", "", plain)
    assert "_" not in paths, "a bare underscore"
    assert "#" not in paths, "a bare hash"
    for spec, body in re.findall(
        r"\\begin\{tabular\}\{(.*)\}\n(.*?)\\end\{tabular\}", bare, flags=re.DOTALL
    ):
        columns = len(re.findall(r"[lrp]", re.sub(r">\{.*?\}(?=p)|\{3\.6cm\}", "", spec)))
        for line in body.splitlines():
            if line.endswith("\\\\"):
                assert len(re.findall(r"(?<!\\)&", line)) + 1 == columns, line
