import { InvalidArgumentError, Option } from 'commander'

const ORG = "an organization's name or UUID"

/** `without` says what a command does without the option. */
export const orgOption = (without = 'all') => repeatedOption('--org <org>', ORG, without)
export const collectionOption = () => repeatedOption('--collection <name>', 'a collection', 'all')
export const waitOption = () => new Option('--wait', 'wait for jobs that another process is working on')

/** Collects its values all the same, so that a second one can be refused. */
export const oneOrgOption = () => new Option('--org <org>', ORG).argParser(collect).default([], 'none')

export const filterOption = () =>
  new Option('--filter <K=V>', 'a filter on top of the configured ones (may be repeated)')
    .argParser(collectPair)
    .default([], 'none')

export const paramOption = () =>
  new Option(
    '--param <NAME=VALUE>',
    'the value of :NAME in the SQL (may be repeated; on PostgreSQL :NAME::bigint says its type where nothing else does)',
  )
    .argParser(collectPair)
    .default([], 'none')

/** For commands that only read. */
export const databaseOption = () =>
  new Option('--database <file>', 'a mirror, a published file or a copy; then no configuration is read')

export const formatOption = (...formats: string[]) =>
  new Option('--format <format>', 'output format').choices(formats)

function repeatedOption(flags: string, description: string, without: string): Option {
  return new Option(flags, `${description} (may be repeated)`).argParser(collect).default([], without)
}

function collect(value: string, previous: string[]): string[] {
  return [...previous, value]
}

function collectPair(value: string, previous: [string, string][]): [string, string][] {
  const at = value.indexOf('=')
  if (at < 1) throw new InvalidArgumentError('Write it as NAME=VALUE.')
  return [...previous, [value.slice(0, at), value.slice(at + 1)]]
}

/** Parses the value of an option. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER) {
  return (value: string): number => {
    const number = Number(value)
    if (/^\d+$/.test(value) && number >= least && number <= most) return number
    const range = most < Number.MAX_SAFE_INTEGER ? ` to ${most}` : ''
    throw new InvalidArgumentError(`Expected a whole number from ${least}${range}.`)
  }
}
