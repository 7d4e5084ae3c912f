# One image for the API, the workers and the migrations. The command selects one: postern api, postern worker, …
FROM node:24.21.0-slim AS base
WORKDIR /app

# Makes the npm package, which the image consists of. Only this stage has the tools for that.
FROM base AS package
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run prepare && npm run prepack && npm pack --ignore-scripts && tar -xzf postern-*.tgz

# The dependencies of the package, in the versions of the lock file.
FROM base AS dependencies
COPY package.json package-lock.json ./
# Prisma's generator, 260 MB, is an optional peer of its client. The last two flags leave it out.
RUN npm ci --ignore-scripts --omit=dev --omit=optional --omit=peer

FROM base
ENV NODE_ENV=production PATH=/app/bin:$PATH
COPY --from=dependencies /app/node_modules node_modules
COPY --from=package /app/package ./

# The image's user "node", as a number. Otherwise Kubernetes can't see that it is not root.
USER 1000:1000
EXPOSE 3000 9100
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --retries=3 CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.ADMIN_PORT || 9100}/livez`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["postern", "api"]
