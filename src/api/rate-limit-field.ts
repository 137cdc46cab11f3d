/** What a `RateLimit` header says; null for what it leaves out. */
export interface RateLimitField {
  limit: number | null
  remaining: number | null
  /** Seconds from now. */
  reset: number | null
}

/**
 * Reads the `RateLimit` header of the IETF's drafts (https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/):
 * `"default";r=50;t=30`, whose limit stands in `RateLimit-Policy` as `"default";q=100;w=60`, or, up to draft 7,
 * `limit=100, remaining=50, reset=30`. Of several policies the one with the fewest requests left counts: it stops us first.
 * Null where there is none that can be read.
 */
export function readRateLimitField(field: string | null, policy: string | null): RateLimitField | null {
  if (field === null) return null
  const [strictest] = policiesIn(field)
    .filter(({ parameters }) => parameters.has('r'))
    .toSorted((one, other) => (one.parameters.get('r') ?? 0) - (other.parameters.get('r') ?? 0))
  if (!strictest) return readOldForm(field)
  const { name, parameters } = strictest
  const announced = policiesIn(policy ?? '').find((one) => one.name === name)
  return {
    limit: announced?.parameters.get('q') ?? null,
    remaining: parameters.get('r') ?? null,
    reset: parameters.get('t') ?? null,
  }
}

function readOldForm(field: string): RateLimitField | null {
  const numbers = numbersIn(field, ',')
  if (!numbers.has('remaining')) return null
  return {
    limit: numbers.get('limit') ?? null,
    remaining: numbers.get('remaining') ?? null,
    reset: numbers.get('reset') ?? null,
  }
}

interface Policy {
  name: string
  parameters: Map<string, number>
}

function policiesIn(text: string): Policy[] {
  const policies = text.matchAll(/"([^"]*)"([^",]*)/g)
  return [...policies].map(([, name = '', rest = '']) => ({ name, parameters: numbersIn(rest, ';') }))
}

/** All `name=number` between the separators. */
function numbersIn(text: string, separator: string): Map<string, number> {
  const pairs = text.split(separator).map((part) => /^\s*([a-z]+)=(\d{1,15})\s*$/.exec(part))
  return new Map(pairs.flatMap((pair) => (pair ? [[pair[1] ?? '', Number(pair[2])] as const] : [])))
}
