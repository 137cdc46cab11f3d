/** A sample of a scrape. */
interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

/** Reads Prometheus' text format, which a library writes. Throws on a line that is neither a comment nor a sample with a number. */
export function parseScrape(text: string): { types: Map<string, string>; samples: Sample[] } {
  const types = new Map<string, string>()
  const samples: Sample[] = []
  for (const line of text.split('\n').filter((one) => one !== '')) {
    const [, described = '', type = ''] = /^# TYPE (\S+) (counter|gauge)$/.exec(line) ?? []
    if (type !== '') types.set(described, type)
    if (line.startsWith('#')) continue
    const [, name = '', labels = '', value = ''] =
      /^(\w+)(?:\{(.*)\})? (-?[\d.]+(?:e[+-]?\d+)?)$/.exec(line) ?? []
    if (!types.has(name)) throw new Error(`not a sample of a metric: ${line}`)
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)]
    samples.push({
      name,
      labels: Object.fromEntries(
        pairs.map(([, label = '', quoted = '']) => [label, JSON.parse(`"${quoted}"`)]),
      ),
      value: Number(value),
    })
  }
  return { types, samples }
}
