import { createDice, hash, uuid } from './random.ts'

export interface Organization {
  id: string
  name: string
  /** Of the only member. Made up, and visibly so. */
  token: string
}

const NAMES = ['acme', 'globex', 'initech', 'umbrella', 'hooli', 'soylent', 'tyrell', 'wonka'] as const
const SALT = { id: 401, token: 402 }
const TOKEN_LENGTH = 40

/** The organizations of a seed, each with the token of its own user. */
export function createOrganizations(count: number, seed: number): Organization[] {
  return Array.from({ length: count }, (_, number) => {
    const name = NAMES[number] ?? `org-${number + 1}`
    const id = uuid(createDice(hash(SALT.id, seed, number)))
    return { id, name, token: createToken(name, number, seed) }
  })
}

/** In Laravel Sanctum's form: the number of the token, a bar, 40 letters and digits. */
function createToken(name: string, number: number, seed: number): string {
  const word = name.charAt(0).toUpperCase() + name.slice(1).replace('-', '')
  const start = `sandbox${word}MadeUp`
  return `${number + 1}|${start}${createDice(hash(SALT.token, seed, number)).digits(TOKEN_LENGTH - start.length)}`
}
