import { counted } from '../text.ts'
import { changedItems } from './changes.ts'
import type { ListedItem } from './items.ts'
import type { Lease, Run, Store, Walk } from './store.ts'
import type { Notice } from './types.ts'
import type { Answer, KeptPage, PageKeeper } from './walk.ts'

export interface PageWriterOptions {
  store: Store
  lease: Lease
  run: Run
  walk: Walk
  /** Open walks to abandon once this one has its first page: until then a run may still resume them. */
  replaces: readonly Pick<Walk, 'id' | 'kind'>[]
}

export interface PageWriter extends PageKeeper {
  /** Items of the walk without a usable key that are new to the mirror. */
  newRejects(): number
}

/** Writes the pages of a walk: changed items and the checkpoint. */
export function createPageWriter({ store, lease, run, walk, ...options }: PageWriterOptions): PageWriter {
  const { collection } = lease.job
  const ignore = new Set(collection.ignore)
  let { newRejects } = walk
  let replaces = options.replaces

  async function abandon(abandoned: Pick<Walk, 'id' | 'kind'>): Promise<void> {
    await store.closeWalk(lease, { walk: abandoned, run, outcome: null, removals: 'none' })
  }

  async function keep({ page, items, newToWalk, entry, next }: Answer): Promise<KeptPage> {
    const stored = await store.lookup(lease.job, items)
    const upserts = changedItems(items, stored, ignore)
    const rejects = rejectsOf(items)
    const keys = items.flatMap((listed) => ('key' in listed ? [listed.key] : []))
    const answer = { entry, items: page.items.length, newToWalk, keys, upserts, rejects }
    const committed = await store.commit(lease, { walk, run, answer, next })
    newRejects += committed.newRejects
    for (const replaced of replaces) await abandon(replaced)
    replaces = []
    const added = upserts.filter(({ change }) => change === 'added').length
    const notices = [...committed.notices, ...rejectNotice(page.number, rejects)]
    return { added, changed: upserts.length - added, rejected: rejects.length, notices }
  }

  return {
    keep,
    async beginPass(next) {
      await store.commit(lease, { walk, run, answer: null, next })
    },
    giveUp: () => abandon(walk),
    newRejects: () => newRejects,
  }
}

interface Reject {
  id: string
  reason: string
  text: string
}

function rejectsOf(items: readonly ListedItem[]): Reject[] {
  return items.flatMap((listed) =>
    'reject' in listed ? [{ id: listed.id, reason: listed.reject, text: listed.item.text }] : [],
  )
}

/** The log line about items without a usable key: how many, and why the first one has none. */
function rejectNotice(page: number, rejects: readonly Reject[]): Notice[] {
  const [first] = rejects
  if (!first) return []
  const many = `${counted(rejects.length, 'item')} of page ${page} ${rejects.length === 1 ? 'has' : 'have'} no usable key`
  return [
    {
      level: 'warn',
      message: `${many} (${first.reason}) and ${rejects.length === 1 ? 'is' : 'are'} kept only in sync_rejects`,
    },
  ]
}
