import type { FreshnessSetting } from './measure.ts'

export const SETTING: Omit<FreshnessSetting, 'order'> = {
  removals: 'oldest',
  life: 'orders',
  rows: 100_000,
  limit: 60,
  arrivals: 1,
  before: 2,
  days: 3,
  killed: 0,
}
