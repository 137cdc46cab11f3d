import type { Checkpoint } from '../types.ts'
import { askFront, askStill } from './front.ts'
import { firstAnchor, lookBack, lookOn, SPAN } from './look-back.ts'
import { askAgain, mayAskAgain, unsettled } from './observe.ts'
import { askOverlap, overlapAt } from './overlap.ts'
import { askSample, wantsSamples } from './samples.ts'
import { forwardTo } from './start.ts'
import type { CoverageState, WalkRules } from './state.ts'
import { isSwinging } from './totals.ts'

/** What to ask for next, when nothing that was asked for is under way any more; nothing when the pass is at its end. */
export function askNext(rules: WalkRules, from: Checkpoint): Checkpoint {
  const { account, nextPage } = from
  if (account.overlap && account.edge)
    return askOverlap(
      rules,
      { ...from, account: { ...account, overlap: overlapAt(account) } },
      account.edge.page,
    )
  const isCountable = isAccountable(rules, account)
  // Pages asked again would bear out nothing, and cost as many requests as the list has pages.
  const isHopeless = isCountable && account.passMoved && isSwinging(account)
  const next = isHopeless ? unsettled(from) : isCountable ? askLook(from) : from
  if (next.ask) return next
  if (nextPage !== null) return { ...next, ask: forwardTo(nextPage) }
  return isCountable && !isHopeless ? askAtEnd(next) : next
}

/** Whether there is something to count by, and somebody who wants to know. */
function isAccountable({ kind, total }: WalkRules, { counted, passAnswers }: CoverageState): boolean {
  return kind === 'full' && total === 'check' && counted && passAnswers > 1
}

function askLook(from: Checkpoint): Checkpoint {
  const account = watch(from.account)
  const { edge, anchor, lookBack: look, closed } = account
  const next = { ...from, account }
  const isAtEnd = from.nextPage === null
  if (!edge || anchor === null || closed.front) return next
  if (look?.waiting) return isAtEnd ? seeEdge(next, edge.page) : next
  if (look) return lookOn(next, look, edge)
  const isDue = edge.page - anchor >= SPAN || (isAtEnd && edge.page > anchor)
  if (!isDue) return next
  if (account.perPage) return lookBack(next, edge, anchor)
  return { ...next, account: { ...account, anchor: edge.page, unsettled: true } }
}

/** From the first movement on, old pages are looked back at. */
function watch(account: CoverageState): CoverageState {
  if (!account.watching && !account.passMoved) return account
  return { ...account, watching: true, anchor: account.anchor ?? firstAnchor(account) }
}

function seeEdge(from: Checkpoint, page: number): Checkpoint {
  if (mayAskAgain(from.account)) return askAgain(from, page)
  return { ...from, account: { ...from.account, lookBack: null, anchor: page, unsettled: true } }
}

function askAtEnd(from: Checkpoint): Checkpoint {
  const { account } = from
  const { closed, passMoved, passDistinct, passTotal } = account
  if (!passMoved)
    return closed.still || passDistinct !== passTotal || !mayAskAgain(account) ? from : askStill(from)
  if (closed.front && !wantsSamples(account)) return from
  const next = closed.front ? askSample(from) : askFront(from, 1)
  // Where it could not be asked for, it is closed, and what comes after it is due.
  return next.ask ? next : askAtEnd(next)
}
