-- Emergencies in a city: who is near one is told, with the shelters close to it.
--
-- Places are metres east (x) and north (y) of the south-west corner of the city. A location is a district of
-- 500 x 500 metres, named like a square of a chessboard: A1 in the corner, B1 east of it, A2 north of it. What
-- is reported from more than 95 km away, as by mistake, is in no district, and a distance beyond all measure is NULL.
--
-- Where somebody is, is for that person alone to say and to ask about: the channels near a user are about the user who
-- subscribes.
--
-- Every channel tells of a report once, in the execution after its arrival. The channels near a user go by where the
-- user is known to be at that moment: who walks up to an old emergency is not told of it.

CREATE DATASET EmergencyReports (
  id STRING, etype STRING, severity INT, x DOUBLE, y DOUBLE, message STRING, at TIMESTAMP
) PRIMARY KEY id;

CREATE KEYED DATASET UserLocations (userId STRING, x DOUBLE, y DOUBLE, at TIMESTAMP) PRIMARY KEY userId;

CREATE REFERENCE DATASET Shelters (id STRING, name STRING, x DOUBLE, y DOUBLE, capacity INT) PRIMARY KEY id;

CREATE FEED reports INTO EmergencyReports SLICED BY id INTO 16 SLICES;

-- Everybody publishes their own location, and nobody anybody else's. Reports come from the authorities' publishers alone.
CREATE FEED locations INTO UserLocations SLICED BY userId INTO 16 SLICES
  WITH userId FROM SUBSCRIBER FOR SUBSCRIBERS;

CREATE REPETITIVE CHANNEL EmergenciesOfType(event STRING) PERIOD 10 SECONDS AS
SELECT r.*
FROM EmergencyReports r
WHERE r.etype = event AND is_new(r);

CREATE REPETITIVE CHANNEL EmergenciesAtLocation(location STRING) PERIOD 20 SECONDS AS
SELECT r.*
FROM EmergencyReports r
WHERE is_new(r)
  AND concat(
    char(65 + floor(CASE WHEN r.x >= 0 AND r.x < 95000 THEN r.x END / 500)),
    1 + floor(CASE WHEN r.y >= 0 AND r.y < 95000 THEN r.y END / 500)
  ) = location;

-- Takes an event although its name does not say so, as in the table of the paper's channels. Near the user, that
-- event is told of however slight it is, and any other once it is grave (severity 4 or 5): what a person worried about
-- floods wants to hear besides floods. For the event alone, within a distance of one's own, see the next channel.
CREATE REPETITIVE CHANNEL EmergenciesNearMe(event STRING, user STRING FROM SUBSCRIBER) PERIOD 10 SECONDS AS
SELECT r.*, try_cast(round(hypot(r.x - u.x, r.y - u.y)) AS INT) AS distance
FROM EmergencyReports r JOIN UserLocations u ON near(r.x, r.y, u.x, u.y, 500)
WHERE u.userId = user AND (r.etype = event OR r.severity >= 4) AND is_new(r);

CREATE REPETITIVE CHANNEL EmergenciesOfTypeNearMe(
  event STRING, user STRING FROM SUBSCRIBER, radius DOUBLE
) PERIOD 10 SECONDS AS
SELECT r.*, try_cast(round(hypot(r.x - u.x, r.y - u.y)) AS INT) AS distance
FROM EmergencyReports r JOIN UserLocations u ON near(r.x, r.y, u.x, u.y, radius)
WHERE u.userId = user AND r.etype = event AND is_new(r);

CREATE REPETITIVE CHANNEL EmergenciesOfTypeAtLocation(event STRING, location STRING) PERIOD 30 SECONDS AS
SELECT r.*
FROM EmergencyReports r
WHERE r.etype = event
  AND concat(
    char(65 + floor(CASE WHEN r.x >= 0 AND r.x < 95000 THEN r.x END / 500)),
    1 + floor(CASE WHEN r.y >= 0 AND r.y < 95000 THEN r.y END / 500)
  ) = location
  AND is_new(r);

-- Shelters are those within 500 metres of the emergency, the nearest first. A report without any is told all the same.
CREATE REPETITIVE CHANNEL EmergenciesOfTypeWithShelterNearMe(
  event STRING, user STRING FROM SUBSCRIBER
) PERIOD 10 SECONDS AS
SELECT r.id, r.etype, r.severity, r.x, r.y, r.message, r.at,
       try_cast(round(hypot(r.x - u.x, r.y - u.y)) AS INT) AS distance,
       sort_array(collect_list(struct(
         try_cast(round(hypot(r.x - h.x, r.y - h.y)) AS INT) AS distance, h.name, h.x, h.y, h.capacity
       )) FILTER (WHERE h.id IS NOT NULL)) AS shelters
FROM EmergencyReports r
  JOIN UserLocations u ON near(r.x, r.y, u.x, u.y, 500)
  LEFT JOIN Shelters h ON near(r.x, r.y, h.x, h.y, 500)
WHERE u.userId = user AND r.etype = event AND is_new(r)
GROUP BY r.id, r.etype, r.severity, r.x, r.y, r.message, r.at, u.x, u.y;

CREATE REPETITIVE CHANNEL EmergenciesOfTypeAtLocationWithShelter(event STRING, location STRING) PERIOD 30 SECONDS AS
SELECT r.id, r.etype, r.severity, r.x, r.y, r.message, r.at,
       sort_array(collect_list(struct(
         try_cast(round(hypot(r.x - h.x, r.y - h.y)) AS INT) AS distance, h.name, h.x, h.y, h.capacity
       )) FILTER (WHERE h.id IS NOT NULL)) AS shelters
FROM EmergencyReports r LEFT JOIN Shelters h ON near(r.x, r.y, h.x, h.y, 500)
WHERE r.etype = event
  AND concat(
    char(65 + floor(CASE WHEN r.x >= 0 AND r.x < 95000 THEN r.x END / 500)),
    1 + floor(CASE WHEN r.y >= 0 AND r.y < 95000 THEN r.y END / 500)
  ) = location
  AND is_new(r)
GROUP BY r.id, r.etype, r.severity, r.x, r.y, r.message, r.at;
