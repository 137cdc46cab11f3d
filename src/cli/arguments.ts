import { InvalidArgumentError, Option } from 'commander'

/** An option that may be given several times; `without` says what none of it means. */
export function repeated(flags: string, description: string, without: string): Option {
  return new Option(flags, `${description} (may be repeated)`).argParser(collect).default([], without)
}

/** An option that may be given several times: all that was given. */
export function collect(value: string, previous: string[]): string[] {
  return [...previous, value]
}

/** `--filter NAME=VALUE`, several times. */
export function collectFilter(value: string, previous: [string, string][]): [string, string][] {
  const at = value.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Write it as NAME=VALUE.')
  return [...previous, [value.slice(0, at), value.slice(at + 1)]]
}

export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER) {
  return (value: string): number => {
    const number = Number(value)
    if (/^\d+$/.test(value) && number >= least && number <= most) return number
    const range = most < Number.MAX_SAFE_INTEGER ? ` to ${most}` : ''
    throw new InvalidArgumentError(`Expected a whole number from ${least}${range}.`)
  }
}
