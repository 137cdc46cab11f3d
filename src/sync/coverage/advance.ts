import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { readOn } from './forward.ts'
import { checkStill, readFront } from './front.ts'
import { compare } from './look-back.ts'
import { askNext } from './next-question.ts'
import { enter } from './observe.ts'
import { findPlace } from './overlap.ts'
import { beginSamples } from './samples.ts'
import type { WalkRules } from './state.ts'
import { lookBehind, readAgain } from './step-back.ts'

/**
 * Where a walk goes on after an answer: what it means for the accounts, by the reason it was asked for, and what to ask
 * next. Throws on a list without end.
 */
export function advance(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const account = enter(from.account, match.why, page, match)
  const next = answer(rules, { ...from, ask: null, account }, page, match)
  return next.ask ? next : askNext(rules, next)
}

function answer(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  switch (match.why) {
    case 'forward':
      return readOn(rules, from, page, match)
    case 'back':
      return lookBehind(rules, from, page, match)
    case 'again':
      return readAgain(rules, from, page, match)
    case 'overlap':
      return findPlace(rules, from, page, match)
    case 'look':
      return compare(from, page, match)
    case 'still':
      return checkStill(from, page, match)
    case 'front':
      return readFront(from, page, match)
    case 'sample':
      return beginSamples(from, page, match)
  }
}
