import { type Document, type ErrorCode, LineCounter, parseDocument } from 'yaml'
import { ConfigError, type Problem } from './problems.ts'
import { readRegularFile } from './token-file.ts'

/** A parsed file, and where its lines begin. */
interface YamlFile {
  document: Document.Parsed
  lines: LineCounter
}

const COPY = 'copy config/admin-mirror.example.yaml there and fill in your own values'

/** Reads the file as one YAML document. Throws a ConfigError with every syntax error. */
export function readYamlFile(file: string): YamlFile {
  return parseYaml(file, decode(file, readBytes(file)))
}

/** Room for 10,000 organizations. */
const LONGEST_FILE = 8 * 1024 * 1024

function readBytes(file: string): Buffer {
  try {
    const bytes = readRegularFile(file, LONGEST_FILE + 1)
    if (bytes.length <= LONGEST_FILE) return bytes
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw new ConfigError(file, [wholeFile(UNREADABLE[code] ?? `cannot be read (${code}).`)])
  }
  throw new ConfigError(file, [
    wholeFile(
      `is larger than ${LONGEST_FILE} bytes. Name the configuration file with --config or ADMIN_MIRROR_CONFIG.`,
    ),
  ])
}

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: `there is no such configuration file. To make one, ${COPY}; or name another with --config or ADMIN_MIRROR_CONFIG.`,
  EACCES:
    'this user may not read the configuration file. Run as a user who may (a service has one of its own), or read a mirror without it: --database FILE.',
  ENOTREG: 'this is a pipe or a device. Write the configuration into a file, and name that.',
  EISDIR: 'this is a folder. Name the configuration file in it.',
  ENOTDIR:
    'a part of this path is not a folder. Name the configuration file with --config or ADMIN_MIRROR_CONFIG.',
}

function decode(file: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new ConfigError(file, [wholeFile('the configuration file is not UTF-8 text. Save it as UTF-8.')])
  }
}

function parseYaml(file: string, text: string): YamlFile {
  const lines = new LineCounter()
  // Keys given twice are found in `readValues`, which knows their key path.
  const document = parseDocument(text, {
    lineCounter: lines,
    merge: true,
    uniqueKeys: false,
    prettyErrors: false,
  })
  const problems = syntaxProblems(document, lines, text.split('\n'))
  if (problems.length > 0) throw new ConfigError(file, problems)
  if (!hasContent(document)) {
    throw new ConfigError(file, [wholeFile(`the configuration file is empty. To fill it, ${COPY}.`)])
  }
  return { document, lines }
}

function syntaxProblems(document: Document.Parsed, lines: LineCounter, source: string[]): Problem[] {
  const byLine = new Map<number, Problem>()
  for (const { code, pos } of [...document.errors, ...document.warnings]) {
    const { line, col } = lines.linePos(pos[0])
    // One slip causes several errors: the first of a line is the one that helps.
    if (byLine.has(line)) continue
    byLine.set(line, { key: '', line, column: col, message: explainYaml(code, source[line - 1] ?? '') })
  }
  if (byLine.size === 0 && document.directives.yaml.version !== '1.2') {
    return [wholeFile('the file asks for another version of YAML. Remove the line %YAML.')]
  }
  return [...byLine.values()]
}

function hasContent({ contents }: Document.Parsed): boolean {
  return contents !== null && !('value' in contents && contents.value === null)
}

function wholeFile(message: string): Problem {
  return { key: '', line: null, column: null, message }
}

/** Explains a syntax error. The parser's own messages quote the text, which may be a token, so they are never shown. */
function explainYaml(code: ErrorCode, line: string): string {
  return (code === 'UNEXPECTED_TOKEN' ? hintAtSlip(line) : null) ?? TEXTS[code]
}

const QUOTING =
  'A text that begins with a sign such as * & { [ ! | > % @ or `, or that holds ": " or " #", must be in quotes.'
const UNFINISHED = 'Close what was opened: a quote, { or [; and put a space after each colon.'
const INDENT = 'Keys of one level begin in the same column. Indent with two spaces a level.'
const ANCHORS = 'Write the value out instead.'

/** For the common mistakes with cron expressions and variables, which the line itself shows. */
function hintAtSlip(line: string): string | null {
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
  BAD_PROP_ORDER: `a tag or an anchor is in the wrong place. ${ANCHORS}`,
  BAD_SCALAR_START: `a value cannot begin with this sign. ${QUOTING}`,
  BLOCK_AS_IMPLICIT_KEY: `a second "key:" begins on the line of the first. ${QUOTING}`,
  BLOCK_IN_FLOW: 'indented lines cannot be between { } or [ ]. Separate by commas, or remove the brackets.',
  DUPLICATE_KEY: 'the same key is given twice. Keep one of them.',
  IMPOSSIBLE: `this is not YAML. ${QUOTING}`,
  KEY_OVER_1024_CHARS: `the colon comes too late for a key. ${UNFINISHED}`,
  MISSING_CHAR: `something is missing. ${UNFINISHED}`,
  MULTILINE_IMPLICIT_KEY: `a key must be on one line, with a colon and a space after it. ${UNFINISHED}`,
  MULTIPLE_ANCHORS: `a value can have one anchor only. ${ANCHORS}`,
  MULTIPLE_DOCS: 'a second document begins here. The file holds one: remove the line ---.',
  MULTIPLE_TAGS: `a value can have one tag only. ${ANCHORS}`,
  NON_STRING_KEY: 'a key must be a text. Put it in quotes.',
  RESOURCE_EXHAUSTION: 'the file is nested too deeply. Write it with fewer levels.',
  TAB_AS_INDENT: `a tab cannot indent. ${INDENT}`,
  TAG_RESOLVE_FAILED: `a tag (the word after !) is not known. Remove it; for a text, ${QUOTING.replace('A text', 'one')}`,
  UNEXPECTED_TOKEN: `this does not fit here. ${QUOTING}`,
}
