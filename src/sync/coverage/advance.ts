import type { PageMatch } from '../seen/match-page.ts'
import type { Checkpoint, Page } from '../types.ts'
import { readForward } from './forward.ts'
import { continueFront, finishSpotCheck } from './front.ts'
import { continueLookBack } from './look-back.ts'
import { askNext } from './next-question.ts'
import { observeAnswer } from './observe.ts'
import { continueOverlap } from './overlap.ts'
import { beginSamples } from './samples.ts'
import type { WalkRules } from './state.ts'
import { continueStepBack, finishReread } from './step-back.ts'

/** Returns the checkpoint after an answer: state and next question. Throws BAD_RESPONSE on an endless list. */
export function advance(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  const state = observeAnswer(from.state, match.why, page, match)
  const next = answer(rules, { ...from, ask: null, state }, page, match)
  return next.ask ? next : askNext(rules, next)
}

function answer(rules: WalkRules, from: Checkpoint, page: Page, match: PageMatch): Checkpoint {
  switch (match.why) {
    case 'forward':
      return readForward(rules, from, page, match)
    case 'back':
      return continueStepBack(rules, from, page, match)
    case 'reread':
      return finishReread(rules, from, page, match)
    case 'overlap':
      return continueOverlap(rules, from, page, match)
    case 'look':
      return continueLookBack(from, page, match)
    case 'spot-check':
      return finishSpotCheck(from, page, match)
    case 'front':
      return continueFront(from, page, match)
    case 'sample':
      return beginSamples(from, page, match)
  }
}
