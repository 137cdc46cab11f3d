import { isMap, isNode, isScalar, isSeq, LineCounter, parseDocument, visit } from 'yaml'

/** Where a value is in the configuration file: keys of mappings and indexes of lists, from the top. */
export type KeyPath = readonly (string | number)[]

/** All problems of one configuration file, a line each, in the order of the file. Ends a command with exit code 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

export type Mapping = Readonly<Record<string, unknown>>

export function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function mappingOf(value: unknown): Mapping {
  return isMapping(value) ? value : {}
}

/** A configuration file as YAML has it. */
export interface ConfigYaml {
  /** Every scalar but null is the text that was typed, so 007 and 1.10 stay. */
  values: unknown
  /** Notes what is wrong at a key, or with the mapping or list in which it is missing; once for each key. Never to be told: a value, which may be a token. */
  report(path: KeyPath, message: string): void
  /** Throws a ConfigError if anything was wrong. */
  end(): void
}

// The parser's own messages quote the text, which may be a token.
const NOT_YAML =
  'this is not YAML, or its indentation is wrong. Keys of one level begin in the same column, without tabs, and a text that begins with a sign such as ' +
  '* & { [ ! | > % @ or `, or that holds ": " or " #", must be in quotes'

/** Reads the text of the file. Throws a ConfigError if it is no YAML. */
export function parseYaml(file: string, text: string): ConfigYaml {
  const lineCounter = new LineCounter()
  const document = parseDocument(text, {
    lineCounter,
    schema: 'failsafe',
    customTags: ['null', 'merge'],
    prettyErrors: false,
  })
  const problems = new Map<string, { offset: number; text: string }>()

  function report(offset: number, key: string, message: string): void {
    const { line, col } = lineCounter.linePos(offset)
    // One slip of the syntax causes several errors of its line, and one wrong value may break several rules.
    const cause = key === '' ? `line ${line}` : key
    if (!problems.has(cause))
      problems.set(cause, {
        offset,
        text: `${file}:${line}:${col}  ${key === '' ? '' : `${key}: `}${message}`,
      })
  }

  function end(): void {
    const sorted = [...problems.values()].toSorted((a, b) => a.offset - b.offset)
    if (sorted.length > 0) throw new ConfigError(sorted.map((problem) => problem.text).join('\n'))
  }

  function read(): unknown {
    const before = problems.size
    const wrong =
      'an alias (*name) stands for nothing, itself or too much, or << for no mapping: write it out, or in quotes'
    visit(document, {
      Alias(_key, node) {
        if (!node.resolve(document)) report(node.range?.[0] ?? 0, '', wrong)
      },
    })
    if (problems.size > before) return end()
    try {
      // Throws for a merge key (<<) of anything but mappings, and for aliases that multiply.
      const values: unknown = document.toJS({ maxAliasCount: 10_000 })
      // Throws for an alias that holds itself.
      JSON.stringify(values)
      return values
    } catch {
      report(0, '', wrong)
      return end()
    }
  }

  /** What aliases and merged mappings hold is placed where they are used. */
  function offsetOf(path: KeyPath): number {
    const [around, name] = [document.getIn(path.slice(0, -1), true), path.at(-1)]
    const pair = isMap(around) && around.items.find(({ key }) => isScalar(key) && key.value === name)
    const node = pair ? pair.key : isSeq(around) && typeof name === 'number' && around.items[name]
    if (isNode(node) && node.range) return node.range[0]
    return path.length > 1 ? offsetOf(path.slice(0, -1)) : 0
  }

  const faults = [...document.errors, ...document.warnings]
  for (const { code, pos } of faults) {
    // One that is no plain word may hold a token.
    const [name = 'this key'] = /^[\w-]+(?=\s*:)/.exec(text.slice(pos[0])) ?? []
    report(pos[0], '', code === 'DUPLICATE_KEY' ? `${name} is given twice: keep one of the two` : NOT_YAML)
  }
  const values = faults.some(({ code }) => code !== 'DUPLICATE_KEY') ? end() : read()
  return { values, report: (path, message) => report(offsetOf(path), formatKey(path), message), end }
}

/** As people write it: `organizations[0].token`. A name that is no plain word is quoted, and cut where a token may follow (`token:abc`). */
export function formatKey(path: KeyPath): string {
  const parts = path.map((part) => {
    if (typeof part === 'number') return `[${part}]`
    return /^[\w-]+$/.test(part) ? `.${part}` : `[${JSON.stringify(part.replace(/[:{].*$/s, '...'))}]`
  })
  return parts.join('').replace(/^\./, '')
}
