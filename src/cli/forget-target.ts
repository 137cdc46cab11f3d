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
    const names = [...new Set(all.map(({ name }) => name))].join(', ')
    throw new UsageError(
      `--org ${nameOrId}: neither the configuration nor the mirror knows an organization of this name or UUID (they know: ${names})`,
    )
  }
  if (others.length > 0) {
    const ids = [one, ...others].map(({ id }) => id).join(', ')
    throw new UsageError(`--org ${nameOrId}: several organizations have this name; write the UUID (${ids})`)
  }
  return one
}

/**
 * The collections that are to be forgotten, of those that the mirror has of the organization. Throws UsageError for one
 * that neither the mirror nor the configuration knows of it.
 */
export function forgottenCollections(
  typed: readonly string[],
  known: readonly string[],
  configured: readonly string[],
): string[] {
  const all = [...new Set([...known, ...configured])]
  const stranger = typed.find((name) => !all.includes(name))
  if (stranger !== undefined) {
    throw new UsageError(
      `--collection ${stranger}: neither the configuration nor the mirror has such a collection of this organization ` +
        `(they have: ${all.join(', ') || 'none'})`,
    )
  }
  return known.filter((name) => typed.length === 0 || typed.includes(name))
}
