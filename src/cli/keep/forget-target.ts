import { UsageError } from '../../errors.ts'

interface Named {
  id: string
  name: string
}

/**
 * The organization with this UUID, or with this name in the mirror or in the configuration. Throws UsageError for one that
 * neither knows, and for a name that several have: deleted data does not come back.
 */
export function organizationToForget(
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
 * The collections that the mirror has of the organization; of these the typed ones, if any. Throws UsageError for one that
 * neither the mirror nor the configuration has.
 */
export function collectionsToForget(
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
