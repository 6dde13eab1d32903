/** Markdown of others, drawn from tokens: nothing of it is ever markup. */
import { Lexer, type Token, type Tokens } from "marked";
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

import { webAddress, withLinks } from "../../text/links";
import { bodyText } from "../../text/names";

/** Characters that are read as Markdown; a longer text is shown as it was written. */
export const MOST_MARKDOWN = 8_000;
/** How deep blocks may stand in each other; what is deeper is shown as it was written. */
const DEEPEST = 12;
/** Marks, and lines, that one text may have: what it costs to read them grows faster than they do. */
const MOST_MARKS = 400;
const MARK = /[[\]*_`~<>|\n]/g;
const NESTED = /(?:^|\n)(?:[ \t]*(?:[>+*-]|\d+[.)])){16}/;
const NAME = /(^|[^\w@/.-])@([a-z][a-z0-9_-]{1,63})/gi;

/** What someone is to the reader: `me`, someone else who is known, or nobody. */
export type Mentioned = (name: string) => "me" | "other" | null;

interface MarkdownProps {
  text: string;
  mentioned?: Mentioned | undefined;
}

export function Markdown({ text, mentioned }: MarkdownProps) {
  const blocks = useMemo(() => tokens(text), [text]);
  if (!blocks) return <PlainText text={text} mentioned={mentioned} />;
  return (
    <div class="markdown" dir="auto">
      {draw(blocks, mentioned ?? nobody, 0)}
    </div>
  );
}

/** Text as it was written, with its addresses as links. */
export function PlainText({ text, mentioned = nobody }: MarkdownProps) {
  return (
    <p class="plain-text" dir="auto">
      {withLinks(bodyText(text)).map((piece, place) =>
        piece.href ? (
          <Link key={place} href={piece.href} text={piece.text} />
        ) : (
          <Mentions key={place} text={piece.text} mentioned={mentioned} />
        ),
      )}
    </p>
  );
}

const nobody: Mentioned = () => null;

/** The blocks of a text; null where it is too long, or would be too hard to read. */
export function tokens(text: string): Token[] | null {
  if (text.length > MOST_MARKDOWN || NESTED.test(text)) return null;
  if ((text.match(MARK)?.length ?? 0) > MOST_MARKS) return null;
  try {
    return new Lexer({ gfm: true, breaks: true }).lex(bodyText(text));
  } catch {
    return null;
  }
}

function draw(list: readonly Token[], mentioned: Mentioned, depth: number): ComponentChildren {
  return list.map((token, place) => <Node key={place} token={token} mentioned={mentioned} depth={depth} />);
}

interface NodeProps {
  token: Token;
  mentioned: Mentioned;
  depth: number;
}

function Node({ token, mentioned, depth }: NodeProps): ComponentChildren {
  if (depth > DEEPEST) return token.raw;
  const inside = (children: readonly Token[] | undefined) =>
    children ? draw(children, mentioned, depth + 1) : null;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "paragraph":
      return <p>{inside(token.tokens)}</p>;
    case "heading":
      // No heading of the page: a stranger's words do not belong in its outline.
      return <p class={`markdown-heading level-${(token as Tokens.Heading).depth}`}>{inside(token.tokens)}</p>;
    case "blockquote":
      return <blockquote>{inside(token.tokens)}</blockquote>;
    case "list": {
      const { ordered, start, items } = token as Tokens.List;
      const drawn = items.map((item, place) => (
        <li key={place}>
          {item.task && (item.checked ? "☑ " : "☐ ")}
          {inside(item.tokens.filter((each) => each.type !== "checkbox"))}
        </li>
      ));
      return ordered ? <ol start={Number(start) || 1}>{drawn}</ol> : <ul>{drawn}</ul>;
    }
    case "table":
      return <Table token={token as Tokens.Table} inside={inside} />;
    case "code":
      return (
        <pre class="code">
          <code>{token.text}</code>
        </pre>
      );
    case "codespan":
      return <code>{token.text}</code>;
    case "strong":
      return <strong>{inside(token.tokens)}</strong>;
    case "em":
      return <em>{inside(token.tokens)}</em>;
    case "del":
      return <del>{inside(token.tokens)}</del>;
    case "br":
      return <br />;
    case "hr":
      return <hr />;
    case "link": {
      const href = webAddress(token.href);
      return href ? (
        <Link href={href} text={token.text}>
          {inside(token.tokens)}
        </Link>
      ) : (
        token.raw
      );
    }
    case "image": {
      const href = webAddress(token.href);
      return href ? <Link href={href} text={`Image: ${token.text || href}`} /> : token.raw;
    }
    case "text":
      return token.tokens ? inside(token.tokens) : <Mentions text={token.text} mentioned={mentioned} />;
    case "escape":
      return token.text;
    default:
      // HTML, and whatever is not known.
      return token.raw;
  }
}

function Table({ token, inside }: { token: Tokens.Table; inside: (list: Token[]) => ComponentChildren }) {
  return (
    <div class="markdown-table" role="region" aria-label="Table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {token.header.map((cell, place) => (
              <th key={place} scope="col">
                {inside(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {token.rows.map((row, place) => (
            <tr key={place}>
              {row.map((cell, column) => (
                <td key={column}>{inside(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A link that cannot claim to lead elsewhere: where its words are not its address, the host follows. */
function Link({ href, text, children }: { href: string; text: string; children?: ComponentChildren }) {
  const url = new URL(href);
  const shown = url.protocol === "mailto:" ? url.pathname : url.host;
  const said = text === href || withLinks(text)[0]?.href === href || text === shown;
  return (
    <>
      <a href={href} title={href} target="_blank" rel="noopener noreferrer">
        {children ?? text}
      </a>
      {!said && <span class="small soft"> ({shown})</span>}
    </>
  );
}

function Mentions({ text, mentioned }: { text: string; mentioned: Mentioned }) {
  const pieces: ComponentChildren[] = [];
  let end = 0;
  for (const found of text.matchAll(NAME)) {
    const name = found[2]!.toLowerCase();
    const who = mentioned(name);
    if (!who) continue;
    const from = found.index + found[1]!.length;
    pieces.push(text.slice(end, from));
    end = found.index + found[0].length;
    pieces.push(
      who === "me" ? (
        <mark class="mention me">{text.slice(from, end)}</mark>
      ) : (
        <span class="mention">{text.slice(from, end)}</span>
      ),
    );
  }
  pieces.push(text.slice(end));
  return <>{pieces}</>;
}
