import { readFileSync } from 'node:fs'
import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
} from 'yaml'
import { ConfigError, formatKey, type KeyPath, type Problem } from './problems.ts'

/** The environment as the commands get it. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Where a problem is said to be: at a value, or at the key before it. */
export type Part = 'key' | 'value'

/** A configuration file as YAML has it. */
export interface ConfigFile {
  /** The plain value. Every scalar but null is the text that was typed, so 007 and 1.10 stay. */
  values: unknown
  problems: Problem[]
  /** Notes a problem of the value at `path`, or of one that is missing there. */
  report(path: KeyPath, message: string, part?: Part): void
}

const COPY = 'copy config/admin-mirror.example.yaml there and fill in your own values'

/** Aliases of aliases multiply: a few could stand for more than fits into the memory. */
const MOST_ALIASES = 10_000

/** Reads the file. Throws a ConfigError if it is no YAML; its messages never quote the file, where a token may stand. */
export function readConfigFile(file: string): ConfigFile {
  const text = readText(file)
  const lines = new LineCounter()
  const document = parseDocument(text, {
    lineCounter: lines,
    schema: 'failsafe',
    customTags: ['null', 'merge'],
    prettyErrors: false,
  })
  const problems: Problem[] = []
  const reportAt = (offset: number, key: string, message: string) => {
    const { line, col } = lines.linePos(offset)
    problems.push({ key, line, column: col, message })
  }
  const source = text.split('\n')
  for (const { code, pos } of [...document.errors, ...document.warnings]) {
    const { line } = lines.linePos(pos[0])
    // One slip causes several errors: the first of a line is the one that helps.
    if (code !== 'DUPLICATE_KEY' && !problems.some((problem) => problem.line === line))
      reportAt(pos[0], '', explain(code, source, line))
  }
  if (problems.length > 0) throw new ConfigError(file, problems)
  const { contents } = document
  if (contents === null || (isScalar(contents) && contents.value === null))
    throw wholeFile(file, `the configuration file is empty. To fill it, ${COPY}.`)
  checkNodes(document, reportAt)
  if (problems.length > 0) throw new ConfigError(file, problems)
  for (const { pos } of document.errors) reportAt(pos[0], '', 'this key is given twice. Keep one of the two.')
  return {
    values: valuesOf(document, file),
    problems,
    report(path, message, part = 'value') {
      const { node, key } = find(document, path)
      reportAt((part === 'key' ? key : node)?.range?.[0] ?? node?.range?.[0] ?? 0, formatKey(path), message)
    },
  }
}

/** Reports what the library would throw at without a place: aliases without an anchor, and keys that are no text. */
function checkNodes(
  document: Document,
  reportAt: (offset: number, key: string, message: string) => void,
): void {
  const anchors = new Map<string, Node>()
  visit(document, {
    Value(_, node) {
      if (node.anchor) anchors.set(node.anchor, node)
    },
    Alias(_, alias, around) {
      const target = anchors.get(alias.source)
      if (target && !around.includes(target)) return undefined
      const why = target ? 'inside its own anchor' : 'and there is no anchor (&name) for it further up'
      reportAt(alias.range?.[0] ?? 0, '', `this is an alias (*name), ${why}. Put a text in quotes.`)
      return visit.REMOVE
    },
    Pair(_, { key }) {
      if (isScalar(key) && key.value !== null && key.value !== '__proto__') return undefined
      const offset = (isNode(key) && key.range?.[0]) || 0
      reportAt(offset, '', 'this cannot be a key. Write each line as "key: value".')
      return visit.REMOVE
    },
  })
}

function readText(file: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw wholeFile(file, UNREADABLE[code] ?? `the configuration file cannot be read (${code}).`)
  }
}

const UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: `there is no such configuration file. To make one, ${COPY}; or name another with --config or ADMIN_MIRROR_CONFIG.`,
  EACCES:
    'this user may not read the configuration file. Run as a user who may (a service has one of its own), or read a mirror without it: --database FILE.',
  EISDIR: 'this is a folder. Name the configuration file in it.',
  ERR_ENCODING_INVALID_ENCODED_DATA: 'the configuration file is not UTF-8 text. Save it as UTF-8.',
}

function wholeFile(file: string, message: string): ConfigError {
  return new ConfigError(file, [{ key: '', line: null, column: null, message }])
}

function valuesOf(document: Document, file: string): unknown {
  try {
    return document.toJS({ maxAliasCount: MOST_ALIASES })
  } catch {
    throw wholeFile(
      file,
      'the aliases (*name) or merge keys (<<) of this file repeat too much, or merge no mapping. Write the values out.',
    )
  }
}

/** The nodes at a key path; of one that is missing or merged, the mapping or list around it. */
function find(document: Document, path: KeyPath): { node: Node | null; key: Node | null } {
  let node: Node | null = document.contents
  let key: Node | null = null
  for (const part of path) {
    const inside = isAlias(node) ? node.resolve(document) : node
    const pair = isMap(inside)
      ? inside.items.find((item) => isScalar(item.key) && item.key.value === part)
      : undefined
    const next = isSeq(inside) && typeof part === 'number' ? inside.items[part] : pair?.value
    key = (pair?.key as Node | undefined) ?? key
    if (!isNode(next)) break
    node = next
  }
  return { node, key }
}

const QUOTING =
  'A text that begins with a sign such as * & { [ ! | > % @ or `, or that holds ": " or " #", must be in quotes.'
const INDENT =
  'the indentation does not fit. Keys of one level begin in the same column, two spaces behind those of the level above.'

const depth = (text: string) => text.search(/[^ -]|$/)

/** Explains a syntax error. The parser's own messages quote the text, which may be a token, so they are never shown. */
function explain(code: ErrorCode, source: readonly string[], line: number): string {
  const [here = '', next = ''] = source.slice(line - 1)
  if (/:\s+\*/.test(here))
    return 'a value that begins with * must be in quotes. Write it like "*/15 * * * *".'
  if (/[{[].*\$\{/.test(here)) return `\${NAME} between { } or [ ] must be in quotes. Write "\${NAME}".`
  const isDeeper = code === 'BLOCK_AS_IMPLICIT_KEY' && /^\s+[\w-]+:/.test(next) && depth(next) > depth(here)
  const isOut = code === 'MISSING_CHAR' && /^\s*[\w-]+:/.test(here)
  if (isDeeper) return `the next line: ${INDENT}`
  if (isOut || code === 'BAD_INDENT' || code === 'TAB_AS_INDENT')
    return code === 'TAB_AS_INDENT' ? `a tab cannot indent. Use two spaces a level.` : INDENT
  return TEXTS[code] ?? `this is no YAML. ${QUOTING}`
}

const TEXTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  BAD_DQ_ESCAPE:
    'a backslash in double quotes begins no known escape. Write \\\\ for a backslash, or use single quotes.',
  BLOCK_AS_IMPLICIT_KEY: `a second "key:" begins on the line of the first. ${QUOTING}`,
  MISSING_CHAR: 'something is missing. Close what was opened: a quote, { or [.',
  MULTILINE_IMPLICIT_KEY: 'a key must be on one line, with a colon and a space after it.',
  MULTIPLE_DOCS: 'a second document begins here. The file holds one: remove the line ---.',
  TAG_RESOLVE_FAILED: 'a tag (a word after !) is not known. Remove it, or put the text in quotes.',
}

/**
 * Replaces `${NAME}` by the environment variable, and `$$` by a dollar; a dollar before anything else stays. A variable's value is
 * used unchanged, dollars included, and never quoted in a problem. `leave`: only says which variables there are.
 */
export function interpolate(
  text: string,
  env: Environment,
  leave = false,
): { text: string; names: string[]; problem: string | null } {
  const names: string[] = []
  let problem: string | null = null
  const result = text.replaceAll(/\$\$|\$\{(?:([A-Za-z_]\w*)\})?/g, (found, name: string | undefined) => {
    if (found === '$$') return '$'
    if (name === undefined) problem ??= MALFORMED
    else {
      names.push(name)
      const value = Object.hasOwn(env, name) ? env[name] : undefined
      const state = value === '' ? 'is empty' : 'is not set'
      if (value) return value
      if (!leave)
        problem ??= `the environment variable ${name} ${state}. Set ${name} before the program starts, or write the value here ($$ for a dollar).`
    }
    return ''
  })
  return { text: leave ? text : result, names, problem }
}

const MALFORMED = `has a \${ that no variable follows. Write \${NAME}, with letters, digits and _ only, or $\${ for a dollar and a brace.`
