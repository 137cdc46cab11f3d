import process from 'node:process'
import { followWithGot } from './follow.ts'

// The least that got can do: asks for page after page, parses, and counts the items.

const [list = ''] = process.argv.slice(2)
let items = 0
await followWithGot(list, ({ data }) => {
  items += data.length
})
process.stdout.write(`${items}\n`)
