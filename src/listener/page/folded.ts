import { html } from 'hono/html'
import { counted } from '../../text.ts'

/** The items of a list that do not stand unfolded; nothing where there are none. `id` keeps it unfolded in the next reading. */
export function foldedItems(id: string, items: readonly unknown[], noun: string) {
  if (items.length === 0) return ''
  return html`<details id="${id}"><summary>${counted(items.length, noun)}</summary><ul>${items}</ul></details>`
}
