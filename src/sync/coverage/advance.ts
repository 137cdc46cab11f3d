import type { Checkpoint, Page, Sighting } from '../types.ts'
import type { WalkRules } from './account.ts'
import { askNext } from './due.ts'
import { enter } from './entering.ts'
import { readOn } from './forward.ts'
import { checkStill, readFront } from './front.ts'
import { compare } from './look-back.ts'
import { findPlace } from './overlap.ts'
import { beginSamples } from './samples.ts'
import { lookBehind, readAgain } from './step-back.ts'

/**
 * Where a walk goes on after an answer: what it means for the accounts, by the reason it was asked for, and what to ask
 * next. Throws on a list without end.
 */
export function advance(rules: WalkRules, from: Checkpoint, page: Page, sighting: Sighting): Checkpoint {
  const account = enter(from.account, sighting.why, page, sighting)
  const next = answer(rules, { ...from, ask: null, account }, page, sighting)
  return next.ask ? next : askNext(rules, next)
}

function answer(rules: WalkRules, from: Checkpoint, page: Page, sighting: Sighting): Checkpoint {
  switch (sighting.why) {
    case 'forward':
      return readOn(rules, from, page, sighting)
    case 'back':
      return lookBehind(rules, from, page, sighting)
    case 'again':
      return readAgain(rules, from, page, sighting)
    case 'overlap':
      return findPlace(rules, from, page, sighting)
    case 'look':
      return compare(from, page, sighting)
    case 'still':
      return checkStill(from, page, sighting)
    case 'front':
      return readFront(from, page, sighting)
    case 'sample':
      return beginSamples(from, page, sighting)
  }
}
