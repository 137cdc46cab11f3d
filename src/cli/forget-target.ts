import { UsageError } from '../errors.ts'

interface Named {
  id: string
  name: string
}

/**
 * The organization that is to be forgotten: by its UUID, or by a name that it has in the mirror or in the configuration.
 * Throws UsageError for one that neither knows, and for a name that two of them have: what is deleted does not come back.
 */
export function forgottenOrganization(
  nameOrId: string,
  known: readonly Named[],
  configured: readonly Named[],
): Named {
  const folded = nameOrId.toLowerCase()
  const all = [...configured, ...known]
  const byId = all.find(({ id }) => id === folded)
  if (byId) return byId
  const exact = all.filter(({ name }) => name === nameOrId)
  const named = exact.length > 0 ? exact : all.filter(({ name }) => name.toLowerCase() === folded)
  const [one, ...others] = new Map(
    named.toReversed().map((organization) => [organization.id, organization]),
  ).values()
  if (!one) {
    const names = [...new Set(known.map(({ name }) => name))].join(', ')
    throw new UsageError(
      `--org ${nameOrId}: the mirror knows no organization of this name or UUID (it knows: ${names || 'none'})`,
    )
  }
  if (others.length > 0) {
    const ids = [one, ...others].map(({ id }) => id).join(', ')
    throw new UsageError(`--org ${nameOrId}: several organizations have this name; write the UUID (${ids})`)
  }
  return one
}

/** The collections that are to be forgotten. Throws UsageError for one that the mirror does not have of the organization. */
export function forgottenCollections(typed: readonly string[], known: readonly string[]): string[] {
  const stranger = typed.find((name) => !known.includes(name))
  if (stranger !== undefined) {
    throw new UsageError(
      `--collection ${stranger}: the mirror has no such collection of this organization (it has: ${known.join(', ') || 'none'})`,
    )
  }
  return typed.length === 0 ? [...known] : [...new Set(typed)]
}
