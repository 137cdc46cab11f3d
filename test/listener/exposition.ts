import { sortedJson } from '../../src/json/value.ts'

/** A sample of a scrape. */
export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

export interface Scrape {
  types: Map<string, string>
  samples: Sample[]
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"'
const SAMPLE = new RegExp(`^(${NAME})(?:\\{((?:${LABEL})(?:,${LABEL})*)?\\})? (\\S+)$`)

/**
 * Reads Prometheus' text format, strictly (https://prometheus.io/docs/instrumenting/exposition_formats/): each metric with its
 * help and type before its samples, all together, no sample twice, no value that is no number. Throws what is wrong.
 */
export function parseScrape(text: string): Scrape {
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  const types = new Map<string, string>()
  const helped = new Set<string>()
  const seen = new Set<string>()
  const samples: Sample[] = []
  let current = ''
  for (const line of text.split('\n').slice(0, -1)) {
    if (line === '') continue
    const [, keyword, name = '', rest = ''] = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`).exec(line) ?? []
    if (keyword === 'HELP') {
      if (helped.has(name)) throw new Error(`two helps of ${name}`)
      helped.add(name)
    } else if (keyword === 'TYPE') {
      if (!helped.has(name) || types.has(name)) throw new Error(`type of ${name} without a help, or twice`)
      if (!/^(counter|gauge)$/.test(rest)) throw new Error(`unknown type ${rest}`)
      types.set(name, rest)
      current = name
    } else {
      const sample = readSample(line)
      if (sample.name !== current) throw new Error(`${sample.name} stands among the samples of ${current}`)
      const key = `${sample.name} ${sortedJson(sample.labels)}`
      if (seen.has(key)) throw new Error(`twice: ${line}`)
      seen.add(key)
      samples.push(sample)
    }
  }
  return { types, samples }
}

function readSample(line: string): Sample {
  const [whole, name = '', labels = '', value = ''] = SAMPLE.exec(line) ?? []
  if (whole === undefined) throw new Error(`not a sample: ${line}`)
  if (!/^-?\d+(\.\d+)?(e[+-]?\d+)?$/.test(value)) throw new Error(`not a number: ${line}`)
  const pairs = [...labels.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"/g)]
  const read = Object.fromEntries(pairs.map(([, label = '', text = '']) => [label, unescaped(text)]))
  if (Object.keys(read).length !== pairs.length) throw new Error(`a label twice: ${line}`)
  return { name, labels: read, value: Number(value) }
}

function unescaped(text: string): string {
  return text.replace(/\\(["\\n])/g, (_, character: string) => (character === 'n' ? '\n' : character))
}
