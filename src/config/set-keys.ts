import { formatKey, type KeyPath } from './config-error.ts'
import { rawEntries, rawItems } from './raw-value.ts'

/** Every key that the file sets, sections too: `publish`, `rateLimit`, `rateLimit.sharePercent`, `organizations[0].schedule`. */
export function listSetKeys(value: unknown, path: KeyPath = []): string[] {
  const inside = [
    ...rawEntries(value).map(([name, part]) => ({ part, at: [...path, name] })),
    ...rawItems(value).map((part, index) => ({ part, at: [...path, index] })),
  ]
  const own = typeof path.at(-1) === 'string' ? [formatKey(path)] : []
  return [...own, ...inside.flatMap(({ part, at }) => listSetKeys(part, at))]
}
