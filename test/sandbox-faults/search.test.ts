import { describe, expect, it } from 'vitest'
import { leaksOf } from '../helpers/workspace.ts'

// What each workspace does with all that the program wrote.

describe('the search for tokens', () => {
  const token = '7|Secret/of+acme-x7Qp93LmZt5VbRw'

  it.each([
    ['whole', `the token ${token} was refused`],
    ['cut short', `the token ${token.slice(0, 20)}...`],
    ['encoded', `?token=${encodeURIComponent(token)}`],
    ['in capitals', token.toUpperCase()],
  ])('finds one that is %s', (_, text) => {
    expect(leaksOf([token], ['nothing', text])).toHaveLength(1)
  })

  it('finds none where none is', () => {
    expect(leaksOf([token], ['7 of them are secret', '[token]'])).toEqual([])
  })
})
