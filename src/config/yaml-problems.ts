import type { ErrorCode } from 'yaml'

/**
 * What to tell about a fault of the YAML. The parser's own messages quote the text that they stumble over, which
 * may be a token, so they are never shown.
 */
export function explainYaml(code: ErrorCode, line: string): string {
  return (code === 'UNEXPECTED_TOKEN' ? hintFor(line) : null) ?? TEXTS[code]
}

const QUOTING =
  'A text that begins with a sign such as * & { [ ! | > % @ or `, or that holds ": " or " #", must be in quotes.'
const UNFINISHED = 'Close what was opened: a quote, { or [; and put a space after each colon.'
const INDENT = 'Keys of one level begin in the same column. Indent with two spaces a level.'
const ANCHORS = 'Write the value out instead.'

/** The mistakes that the signs of a cron expression and of a variable lead to, told by the line itself. */
function hintFor(line: string): string | null {
  if (/:\s+\*/.test(line))
    return 'a value that begins with * must be in quotes. Write it like "*/15 * * * *".'
  if (/[{[].*\$\{/.test(line)) return `\${NAME} between { } or [ ] must be in quotes. Write "\${NAME}".`
  return null
}

const TEXTS: Readonly<Record<ErrorCode, string>> = {
  ALIAS_PROPS: `an alias cannot have a tag or an anchor. ${ANCHORS}`,
  BAD_ALIAS: `an alias has no usable name. ${QUOTING}`,
  BAD_COLLECTION_TYPE: 'a tag does not fit its value. Remove the tag (the word after !).',
  BAD_DIRECTIVE: 'a line that begins with % is not understood. Remove it.',
  BAD_DQ_ESCAPE:
    'a backslash in double quotes begins no known escape. Write \\\\ for a backslash, or use single quotes.',
  BAD_INDENT: `the indentation does not fit. ${INDENT}`,
  BAD_PROP_ORDER: `a tag or an anchor stands in the wrong place. ${ANCHORS}`,
  BAD_SCALAR_START: `a value cannot begin with this sign. ${QUOTING}`,
  BLOCK_AS_IMPLICIT_KEY: `a second "key:" begins on the line of the first. ${QUOTING}`,
  BLOCK_IN_FLOW:
    'lines with indentation cannot stand between { } or [ ]. Separate by commas, or remove the brackets.',
  DUPLICATE_KEY: 'the same key is given twice. Keep one of them.',
  IMPOSSIBLE: `this is no YAML. ${QUOTING}`,
  KEY_OVER_1024_CHARS: `the colon comes too late for a key. ${UNFINISHED}`,
  MISSING_CHAR: `something is missing. ${UNFINISHED}`,
  MULTILINE_IMPLICIT_KEY: `a key must stand on one line, with a colon and a space after it. ${UNFINISHED}`,
  MULTIPLE_ANCHORS: `a value can have one anchor only. ${ANCHORS}`,
  MULTIPLE_DOCS: 'a second document begins here. The file holds one: remove the line ---.',
  MULTIPLE_TAGS: `a value can have one tag only. ${ANCHORS}`,
  NON_STRING_KEY: 'a key must be a text. Put it in quotes.',
  RESOURCE_EXHAUSTION: 'the file is nested too deeply. Write it with fewer levels.',
  TAB_AS_INDENT: `a tab cannot indent. ${INDENT}`,
  TAG_RESOLVE_FAILED: `a tag (the word after !) is not known. Remove it; for a text, ${QUOTING.replace('A text', 'one')}`,
  UNEXPECTED_TOKEN: `this does not fit here. ${QUOTING}`,
}
