import { describe, expect, it } from 'vitest'
import { redact } from '../../src/api/redact.ts'

const TOKEN = '12|s3cr3t/t0ken-that-nobody-may-see'

describe('redact', () => {
  it.each([
    ['the token', `no user for ${TOKEN}, sorry`, 'no user for [token] sorry'],
    ['a word around it', `you sent "Bearer:${TOKEN}"!`, 'you sent [token]'],
    ['other case', TOKEN.toUpperCase(), '[token]'],
    ['URI encoding', `/login?token=${encodeURIComponent(TOKEN)}&x`, '[token]'],
    ['URI encoding in small letters', encodeURIComponent(TOKEN).toLowerCase(), '[token]'],
    ['slashes as PHP writes them', JSON.stringify({ t: TOKEN }).replaceAll('/', '\\/'), '[token]'],
    ['12 characters of its beginning', `${TOKEN.slice(0, 12)}...`, '[token]'],
    ['12 characters of its end', `...${TOKEN.slice(-12)}`, '[token]'],
    ['12 characters of its encoding', encodeURIComponent(TOKEN).slice(3, 15), '[token]'],
  ])('hides each word that holds %s', (_case, text, shown) => {
    expect(redact(text, TOKEN)).toBe(shown)
  })

  it.each([
    ['11 characters of it', TOKEN.slice(5, 16), TOKEN],
    ['other words', 'Unauthenticated: 12 of them', TOKEN],
    ['everything, of an empty token', 'a text', ''],
  ])('leaves %s', (_case, text, token) => {
    expect(redact(text, token)).toBe(text)
  })

  it('hides a token that is shorter than a piece, as a whole', () => {
    expect(redact('x short! y', 'short')).toBe('x [token] y')
  })
})
