import process from 'node:process'

/** Whether everything is tested that takes long, as `npm run test:all` does. */
export const LONG = process.env.LONG === '1'
