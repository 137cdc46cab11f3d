import { type Asked, type Fault, items, type ListServer, pageOf, serve } from '../helpers/list-server.ts'
import type { OrganizationSettings } from '../helpers/workspace.ts'

/** A line of a script: to which requests what happens. What it does not name may be anything. */
export interface Rule {
  /** Its name. */
  organization?: string
  collection?: string
  page?: number
  /** Which of the requests for the same page of the same list: 1 is the first. */
  try?: number | readonly number[]
  fault: Fault
}

export interface FaultServerOptions {
  organizations: readonly OrganizationSettings[]
  /** Of each list; two of them are a page. */
  items?: number
  tls?: { key: string; cert: string }
}

export interface FaultServer extends ListServer {
  /** From now on nothing happens any more but lists. */
  heal(): void
  /** The pages that this organization asked for, in the order it did. */
  pagesOf(organization: string): number[]
}

/** Real lists on a real socket, and the faults of a script. The first line that fits a request counts. */
export async function serveFaults(
  script: readonly Rule[],
  { organizations, items: count = 8, tls }: FaultServerOptions,
): Promise<FaultServer> {
  const list = items(count)
  let rules = script
  const idOf = (name: string) => organizations.find((one) => one.name === name)?.id

  function fits(rule: Rule, asked: Asked): boolean {
    return (
      (rule.organization === undefined || idOf(rule.organization) === asked.organization) &&
      (rule.collection ?? asked.collection) === asked.collection &&
      (rule.page ?? asked.page) === asked.page &&
      (rule.try === undefined || [rule.try].flat().includes(triesOf(asked)))
    )
  }

  function triesOf({ organization, path, page }: Asked): number {
    return server.asked.filter(
      (one) => one.organization === organization && one.path === path && one.page === page,
    ).length
  }

  const server = await serve((asked) => {
    const rule = rules.find((one) => fits(one, asked))
    return { ...pageOf(list, asked), ...(rule ? { fault: rule.fault } : {}) }
  }, tls)
  return {
    ...server,
    heal() {
      rules = []
    },
    pagesOf: (name) =>
      server.asked.filter(({ organization }) => organization === idOf(name)).map(({ page }) => page),
  }
}
