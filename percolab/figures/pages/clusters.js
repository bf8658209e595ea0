// The clusters of one sample at every p, by union-find.  Nothing here touches the page, so that the
// tests can run this file by itself.
//
// "Count" is how many bonds (sites of the site model) are open.  The sample is the same at every p
// between the numbers u of two openings, so it is known by its count.
"use strict";

/** Return the typed array of base64 text. */
function unpack(text, Kind) {
  return new Kind(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

/**
 * Return a sample from the data of the page (percolab/configurations/sample_page.py):
 * order: the sites in the order in which they are there;  born: by site the count from which on it
 * is there;  ends: two sites of every bond, the first to open first;  opens: by bond its count.
 */
function readSample(data) {
  const points = data.shape[0] * data.shape[1];
  const order = unpack(data.order, Uint16Array);
  const born = new Uint32Array(points).fill(0xffffffff);
  order.forEach((site, n) => { born[site] = data.draws_sites ? n + 1 : 0; });
  const ends = unpack(data.ends, Uint16Array);
  const opens = new Uint32Array(ends.length / 2);
  for (let n = 0; n < opens.length; n++) {
    opens[n] = data.draws_sites ? Math.max(born[ends[2 * n]], born[ends[2 * n + 1]]) : n + 1;
  }
  const sides = new Uint8Array(points);
  data.sides.forEach((sites, bit) => sites.forEach((site) => { sides[site] |= 1 << bit; }));
  const periods = new Int8Array(ends.length);
  data.periods.forEach(([bond, x, y]) => { periods[2 * bond] = x; periods[2 * bond + 1] = y; });
  const digits = unpack(data.digits, Uint16Array);
  return { ...data, points, order, born, ends, opens, sides, periods, digits };
}

/** Return the number u of the opening that makes the count n, to 16 binary digits of a step. */
function numberOf(sample, n) {
  if (n === 0) return 0;
  const step = sample.counts.findIndex((count) => count >= n);
  const last = sample.counts.length - 1;
  return ((step < 0 ? last : step) - 1 + sample.digits[n - 1] / 65536) / last;
}

/** Return how many are open at p: exactly at a step of the slider, else to the digits of u. */
function countAt(sample, p) {
  const last = sample.counts.length - 1;
  const step = Math.round(p * last);
  if (Math.abs(p * last - step) < 1e-9) return sample.counts[step];
  let [low, high] = [0, sample.digits.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numberOf(sample, middle + 1) < p) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The clusters of a sample while its count grows; the root of each is its smallest site. */
class Forest {
  constructor(sample) {
    this.sample = sample;
    this.parent = Int32Array.from({ length: sample.points }, (_, site) => site);
    this.size = new Int32Array(sample.points);
    this.touches = Uint8Array.from(sample.sides); // sides, two bits an axis, by root
    this.wraps = new Uint8Array(sample.points); // periodic axes, one bit each, by root
    this.away = new Int16Array(2 * sample.points); // periods from the parent to the site
    this.placed = this.joined = 0;
    this.clusters = this.largest = this.squares = 0;
    this.crossed = [null, null]; // by axis the count at which a cluster first spans or wraps
  }

  /** Open all up to a count, which must not be below the one before. */
  advance(count) {
    const { order, born, opens } = this.sample;
    while (this.placed < order.length && born[order[this.placed]] <= count) {
      this.occupy(order[this.placed++]);
    }
    while (this.joined < opens.length && opens[this.joined] <= count) this.join(this.joined++);
    return this;
  }

  occupy(site) {
    this.size[site] = 1;
    this.clusters++;
    this.squares++;
    this.largest = Math.max(this.largest, 1);
    this.note(site, this.sample.born[site]);
  }

  /** Return the root of a site; x and y are how many periods it is away from it. */
  find(site) {
    const { parent, away } = this;
    let [root, x, y] = [site, 0, 0];
    for (; parent[root] !== root; root = parent[root]) {
      x += away[2 * root];
      y += away[2 * root + 1];
    }
    [this.x, this.y] = [x, y];
    while (parent[site] !== root) {
      const [next, dx, dy] = [parent[site], away[2 * site], away[2 * site + 1]];
      [parent[site], away[2 * site], away[2 * site + 1]] = [root, x, y];
      [site, x, y] = [next, x - dx, y - dy];
    }
    return root;
  }

  join(bond) {
    const { ends, periods, opens } = this.sample;
    let a = this.find(ends[2 * bond]);
    let [x, y] = [this.x + periods[2 * bond], this.y + periods[2 * bond + 1]];
    let b = this.find(ends[2 * bond + 1]);
    [x, y] = [x - this.x, y - this.y];
    if (a === b) {
      this.wraps[a] |= (x !== 0) | ((y !== 0) << 1);
    } else {
      if (b < a) [a, b, x, y] = [b, a, -x, -y];
      [this.parent[b], this.away[2 * b], this.away[2 * b + 1]] = [a, x, y];
      this.squares += 2 * this.size[a] * this.size[b];
      this.size[a] += this.size[b];
      this.touches[a] |= this.touches[b];
      this.wraps[a] |= this.wraps[b];
      this.clusters--;
      this.largest = Math.max(this.largest, this.size[a]);
    }
    this.note(a, opens[bond]);
  }

  note(root, count) {
    for (const axis of [0, 1]) {
      if (this.crossed[axis] === null && this.crosses(root, axis)) this.crossed[axis] = count;
    }
  }

  /** Return whether a cluster spans along an axis, or wraps around it. */
  crosses(root, axis) {
    return ((this.touches[root] >> (2 * axis)) & 3) === 3 || ((this.wraps[root] >> axis) & 1) === 1;
  }
}

/** Return labels (-1: no site), sizes and crossed axes by label, and sums, at a count. */
function clustersAt(sample, count) {
  const forest = new Forest(sample).advance(count);
  const labels = Int32Array.from(sample.born, (born, site) => (born <= count ? forest.find(site) : -1));
  return { labels, forest };
}

/**
 * Return the curves of a sample at all steps of p: the share of the largest cluster, the mean size
 * of the others (sum of squares without the largest one by all sites); and the counts at which it
 * first spans or wraps.
 */
function curvesOf(sample) {
  const forest = new Forest(sample);
  const [share, mean, total] = [[], [], sample.order.length];
  for (const count of sample.counts) {
    forest.advance(count);
    share.push(forest.largest / total);
    mean.push((forest.squares - forest.largest ** 2) / total);
  }
  return { share, mean, crossed: forest.crossed };
}

if (typeof module !== "undefined") module.exports = { readSample, numberOf, countAt, clustersAt, curvesOf };
