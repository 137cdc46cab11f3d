import type { Dice } from './random.ts'
import { type City, STREETS } from './words.ts'

/** The nested address of a customer or an establishment. */
export interface Address {
  street: string
  city: string
  /** Text: its leading zero matters. */
  zip: string
  country: string
}

export function createAddress(dice: Dice, city: City): Address {
  return {
    street: `${dice.pick(STREETS)} ${1 + dice.below(120)}`,
    city: city.name,
    zip: `0${dice.digits(4)}`,
    country: city.country,
  }
}
