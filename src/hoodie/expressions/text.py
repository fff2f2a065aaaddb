"""What SQL expressions are about, read from their text: the columns they name, their conjuncts, equal columns.

sqlglot only recognises here. Spark evaluates, and gets slices of the text as it was given.
"""

import functools
import re
from collections.abc import Collection

from hoodie.expressions.parser import DIALECT, SqlglotError, Token, TokenType, exp, parse, tokens_of

_OPENS = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_CLOSES = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
#: What an operand stands behind: `end` there is a column of that name.
_BEFORE_OPERAND = {
    *(TokenType.CASE, TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.AND, TokenType.OR, TokenType.NOT),
    *(TokenType.EQ, TokenType.NEQ, TokenType.NULLSAFE_EQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE),
    *(TokenType.PLUS, TokenType.DASH, TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DPIPE),
    *(TokenType.DIV, TokenType.AMP, TokenType.PIPE, TokenType.CARET, TokenType.TILDE),
    *(TokenType.BETWEEN, TokenType.LIKE, TokenType.ILIKE, TokenType.RLIKE, TokenType.FROM),
}


def depths(tokens: list[Token]) -> list[int]:
    """How many brackets and CASEs are open at each token; a bracket counts as outside itself. CASE and END are also
    names of columns: behind a dot, and END where no CASE is open, or where it needs a value. < and > are brackets in
    the type behind a `::`."""
    levels: list[int] = []
    opened: list[TokenType] = []
    before: TokenType | None = None
    for place, token in enumerate(tokens):
        kind = token.token_type
        in_case = opened[-1:] == [TokenType.CASE]
        ends_case = in_case and kind is TokenType.END and before not in (TokenType.DOT, *_BEFORE_OPERAND)
        in_type = opened[-1:] == [TokenType.LT]
        if kind in _CLOSES:
            while opened and opened.pop() in (TokenType.CASE, TokenType.LT):
                pass  # it was a name, or nothing closes it
        elif ends_case or (in_type and kind is TokenType.GT):
            opened.pop()
        levels.append(len(opened))
        opens_type = kind is TokenType.LT and (in_type or _casts(tokens, place))
        if kind in _OPENS or opens_type or (kind is TokenType.CASE and before is not TokenType.DOT):
            opened.append(kind)
        before = kind
    return levels


def _casts(tokens: list[Token], place: int) -> bool:
    """Whether the < at a place begins the parts of a type, as in `a::array<int>`."""
    return (
        place > 1
        and tokens[place - 2].token_type is TokenType.DCOLON
        and tokens[place - 1].token_type in (TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT)
    )


def conjuncts(text: str) -> list[str]:
    """The parts of a condition that AND joins, as they stand in it; the text itself where it cannot be taken apart."""
    try:
        tokens = tokens_of(text)
    except SqlglotError:
        return [text]
    starts, between = [0], False
    for token, depth in zip(tokens, depths(tokens), strict=True):
        if depth:
            continue
        if token.token_type is TokenType.OR or token.text.upper() == "OR":
            return [text]
        if token.token_type is TokenType.BETWEEN:
            between = True
        elif token.token_type is TokenType.AND:
            if not between:
                starts += [token.start, token.end + 1]
            between = False
    ends = [*starts[1:], len(text)]
    parts = [text[a:b].strip() for a, b in list(zip(starts, ends, strict=True))[::2]]
    if len(parts) == 1 and (inner := _unwrapped(text, tokens)):
        return conjuncts(inner)
    return parts


def _unwrapped(text: str, tokens: list[Token]) -> str:
    """The text within the brackets that are around all of it; "" where there are none."""
    if len(tokens) < 3 or tokens[0].token_type is not TokenType.L_PAREN:
        return ""
    inside = depths(tokens)[1:-1]
    return text[tokens[0].end + 1 : tokens[-1].start] if min(inside) > 0 else ""


def columns_named(text: str) -> list[tuple[str, ...]] | None:
    """The columns that an expression names, each as its parts, in lower case; None where that is not known: text that
    sqlglot does not read, subqueries, stars."""
    tree = parsed(text)
    if tree is None or tree.find(exp.Query, exp.Star, exp.Command) is not None:
        return None
    return [tuple(part.name.lower() for part in column.parts) for column in tree.find_all(exp.Column)]


@functools.lru_cache(maxsize=1024)
def parsed(text: str) -> exp.Expr | None:
    """The expression's tree, which is not to be changed; None where sqlglot does not read it."""
    try:
        return parse(text)
    except SqlglotError:
        return None


def of_side(text: str, columns: Collection[str], side: str, other: str) -> str:
    """An expression whose plain names of columns of one side of a merge say that they are that side's.

    columns  of the side
    side     what expressions call it; `other`: what they call the other one
    returns  the text as it is where it has a subquery, whose names may be its own, or cannot be read
    """
    tree = parsed(text)
    if tree is None or tree.find(exp.Query, exp.Command) is not None:
        return text
    names, tables = {column.lower() for column in columns}, {side.lower(), other.lower()}
    starts = []
    for column in tree.find_all(exp.Column):
        first = column.parts[0]
        is_table = len(column.parts) > 1 and first.name.lower() in tables
        if first.name.lower() in names and not is_table and "start" in first.meta:
            starts.append(first.meta["start"])
    for start in sorted(starts, reverse=True):
        text = f"{text[:start]}{tick(side)}.{text[start:]}"
    return text


def about_source_only(text: str, source: str, target: str, table_columns: Collection[str]) -> bool:
    """Whether an expression can be evaluated without the table's rows.

    table_columns  in lower case: a bare name of one of them may mean the table's
    """
    named = columns_named(text)
    if named is None:
        return False
    return all(
        parts[0] == source.lower()
        if len(parts) > 1 and parts[0] in (source.lower(), target.lower())
        else parts[0] not in table_columns
        for parts in named
    )


def equal_columns(text: str, source: str, target: str) -> dict[str, str] | None:
    """The columns of table -> source, in lower case, that a condition says are equal; None where it says more."""
    equal: dict[str, str] = {}
    for part in conjuncts(text):
        pair = _equal_pair(part, source, target, (exp.EQ,))
        if pair is None or pair[0] in equal:
            return None
        equal[pair[0]] = pair[1]
    return equal


def equalities(text: str, source: str, target: str) -> set[tuple[str, str]]:
    """The columns of table and source, in lower case, that are equal where a condition holds, whatever else it says."""
    pairs = (_equal_pair(part, source, target, (exp.EQ, exp.NullSafeEQ)) for part in conjuncts(text))
    return {pair for pair in pairs if pair is not None}


def _equal_pair(part: str, source: str, target: str, operators: tuple[type[exp.Expr], ...]) -> tuple[str, str] | None:
    """The column of the table and that of the source that a part of a condition compares; None: it is another one."""
    tree = parsed(part)
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if not isinstance(tree, operators):
        return None
    sides = [_qualified(side) for side in (tree.this, tree.expression)]
    by_table = {side[0]: side[1] for side in sides if side is not None}
    if None in sides or by_table.keys() != {source.lower(), target.lower()}:
        return None
    return by_table[target.lower()], by_table[source.lower()]


def _qualified(node: exp.Expr) -> tuple[str, str] | None:
    if isinstance(node, exp.Column) and len(node.parts) == 2:
        table, name = (part.name.lower() for part in node.parts)
        return table, name
    return None


def three_valued(text: str) -> str:
    """The condition of a join, each `x IN (SELECT …)` within more than AND and OR spelled out: Spark's joins take it
    for false where it is unknown, so that a NOT IN holds beside a null."""
    tree = parsed(text)
    spelled = None if tree is None else tree.transform(_spelled_out)
    return text if spelled == tree or spelled is None else spelled.sql(dialect=DIALECT)


def _spelled_out(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.In) or "query" not in node.args or isinstance(node.this, exp.Tuple):
        return node
    above = node.parent
    while isinstance(above, (exp.And, exp.Or, exp.Paren)):
        above = above.parent
    if above is None or node.find_ancestor(exp.Query) is not None:
        return node
    value, query = node.this.sql(dialect=DIALECT), node.args["query"].sql(dialect=DIALECT)
    has_null = f"EXISTS (SELECT 1 FROM {query} AS `rows`(`value`) WHERE `value` IS NULL)"
    unknown = f"{has_null} OR ({value} IS NULL AND EXISTS {query})"
    return parse(f"(CASE WHEN {value} IN {query} THEN TRUE WHEN {unknown} THEN NULL ELSE FALSE END)")


def same_expression(one: object, other: object) -> bool:
    """Whether two values of clauses are the same text, but for how a plain column is written."""
    if not isinstance(one, str) or not isinstance(other, str):
        return one is other
    return _normalized(one) == _normalized(other)


def _normalized(text: str) -> str:
    tree = parsed(text)
    if isinstance(tree, exp.Column):
        return ".".join(part.name.lower() for part in tree.parts)
    return text.strip()


def tick(name: str) -> str:
    """A name as SQL has it in backticks."""
    return "`" + name.replace("`", "``") + "`"


_TOKEN = re.compile(
    r"""(?P<quoted>"(?:[^"\\]|\\.|"")*")"""
    r"""|(?P<other>'(?:[^'\\]|\\.|'')*'|`[^`]*`|\d\w*)"""
    r"""|(?P<word>[^\W\d]\w*)""",
    re.S,
)
#: What follows a column: a comparison. Then the word before it can be no keyword.
_COMPARED = re.compile(r"\s*(?:[=<>]|!=|(?:not|is|in|like|between)\b)", re.I)
#: What the parser says for programmers and terminals: names of its classes, and the codes that underline a word.
_NOISE = re.compile(r" for <class '[^']*'>|\x1b\[[0-9;]*m")


# --- what standard SQL and Spark's read differently: double quotes, and columns that are named like keywords ---


def standard_text(text: str, columns: Collection[str]) -> str:
    """An expression as Spark's SQL has it.

    A name in double quotes, or a bare keyword such as when, is a column where a comparison follows and the table has
    it; elsewhere double quotes are a text, as in Spark.
    """
    lower = {name.lower() for name in columns}

    def token(match: re.Match[str]) -> str:
        name = match["word"] or (match["quoted"] or "")[1:-1].replace('""', '"')
        around = text[match.start() - 1 : match.start()] == "." or "`" in name
        if not around and name.lower() in lower and _COMPARED.match(text, match.end()):
            return f"`{name}`"
        return match[0]

    return _TOKEN.sub(token, text)


def plain_problem(problem: Exception | str) -> str:
    """What the parser says, as a user reads it."""
    return " ".join(_NOISE.sub("", str(problem)).split())
