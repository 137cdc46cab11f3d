import { readFileSync } from 'node:fs'
import { isAlias, isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml'
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

// The parser's own messages quote the text, which may be a token.
const NOT_YAML =
  'this is not YAML, or its indentation is wrong. Keys of one level begin in the same column, without tabs, and a text that begins with a sign such as ' +
  '* & { [ ! | > % @ or `, or that holds ": " or " #", must be in quotes.'

/** Reads the file. Throws a ConfigError if it is no YAML; its messages never quote the file, where a token may stand. */
export function readConfigFile(file: string): ConfigFile {
  const lineCounter = new LineCounter()
  const document = parseDocument(readText(file), {
    lineCounter,
    schema: 'failsafe',
    customTags: ['null', 'merge'],
    prettyErrors: false,
  })
  const problems: Problem[] = []
  const reportAt = (offset: number, key: string, message: string) => {
    const { line, col } = lineCounter.linePos(offset)
    // One slip of the syntax causes several errors: the first of a line is the one that helps.
    if (key !== '' || !problems.some((one) => one.line === line))
      problems.push({ key, line, column: col, message })
  }
  for (const { code, pos } of [...document.errors, ...document.warnings])
    reportAt(
      pos[0],
      '',
      code === 'DUPLICATE_KEY' ? 'this key is given twice. Keep one of the two.' : NOT_YAML,
    )
  visit(document, {
    Alias(_, alias, around) {
      const target = alias.resolve(document)
      if (!target || around.includes(target)) reportAt(alias.range?.[0] ?? 0, '', NOT_YAML)
    },
    Pair(_, { key }) {
      if (!isScalar(key) || key.value === '__proto__')
        reportAt((isNode(key) && key.range?.[0]) || 0, '', 'this cannot be a key. Write "key: value".')
    },
  })
  if (problems.some(({ message }) => !message.includes('twice'))) throw new ConfigError(file, problems)
  let values: unknown
  try {
    // Aliases of aliases multiply: a few could stand for more than fits into the memory.
    values = document.toJS({ maxAliasCount: 10_000 })
  } catch {
    throw wholeFile(file, 'the aliases (*name) of this file repeat too much. Write the values out.')
  }
  if (values === null) throw wholeFile(file, `the configuration file is empty. To fill it, ${COPY}.`)

  /** The node at a key path, and its key; of one that is missing or merged, those of the mapping or list around it. */
  function find(path: KeyPath): { node: Node | null; key: Node | null } {
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

  return {
    values,
    problems,
    report(path, message, part = 'value') {
      const { node, key } = find(path)
      reportAt((part === 'key' ? key : node)?.range?.[0] ?? node?.range?.[0] ?? 0, formatKey(path), message)
    },
  }
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
  ERR_ENCODING_INVALID_ENCODED_DATA: 'the configuration file is not UTF-8 text. Save it as UTF-8.',
}

function wholeFile(file: string, message: string): ConfigError {
  return new ConfigError(file, [{ key: '', line: null, column: null, message }])
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
    if (name === undefined) {
      problem ??= `has a \${ that no variable follows. Write \${NAME}, or $\${ for a dollar and a brace.`
      return ''
    }
    names.push(name)
    const value = (Object.hasOwn(env, name) && env[name]) || ''
    if (value === '' && !leave)
      problem ??= `the environment variable ${name} is not set, or empty. Set it, or write the value here ($$ for a dollar).`
    return value
  })
  return { text: leave ? text : result, names, problem }
}
