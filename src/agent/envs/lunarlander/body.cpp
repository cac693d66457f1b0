// body.cpp: see body.h. The numbers are those of Gymnasium's LunarLander.
#include "agent/envs/lunarlander/body.h"

#include <box2d/box2d.h>

#include <new>

namespace {

const double SCALE = 30, WIDTH = 600 / SCALE, HEIGHT = 400 / SCALE;
const double LEG_AWAY = 20, LEG_DOWN = 18, LEG_HALF_WIDTH = 2, LEG_HALF_HEIGHT = 8;
const int HULL[SHOAL_LANDER_HULL_POINTS][2] = {{-14, 17}, {-17, 0}, {-17, -10}, {17, -10}, {17, 0}, {14, 17}};
const uint16 GROUND_BITS = 0x0001, HULL_BITS = 0x0010, LEG_BITS = 0x0020;

b2Vec2 vec(double x, double y) { return b2Vec2(static_cast<float>(x), static_cast<float>(y)); }

} // namespace

struct shoal_lander_body : b2ContactListener {
  b2World world{b2Vec2(0, -10)};
  b2Body *hull = nullptr;
  b2Body *legs[2] = {};
  bool legs_down[2] = {};
  bool crashed = false;

  bool touches(b2Contact *contact, const b2Body *body) const {
    return contact->GetFixtureA()->GetBody() == body || contact->GetFixtureB()->GetBody() == body;
  }

  void BeginContact(b2Contact *contact) override {
    if (touches(contact, hull)) crashed = true;
    for (int i = 0; i < 2; i++)
      if (touches(contact, legs[i])) legs_down[i] = true;
  }

  // A leg that leaves one piece of the ground counts as up even when it stands on another: as there.
  void EndContact(b2Contact *contact) override {
    for (int i = 0; i < 2; i++)
      if (touches(contact, legs[i])) legs_down[i] = false;
  }

  void add_edge(b2Body *ground, b2Vec2 from, b2Vec2 to, float friction) {
    b2EdgeShape edge;
    edge.SetTwoSided(from, to);
    b2FixtureDef fixture;
    fixture.shape = &edge;
    fixture.friction = friction;
    ground->CreateFixture(&fixture);
  }

  void add_ground(const double points[SHOAL_LANDER_GROUND_POINTS][2]) {
    b2BodyDef def;
    b2Body *ground = world.CreateBody(&def);
    add_edge(ground, vec(0, 0), vec(WIDTH, 0), 0.2f);
    for (int i = 0; i + 1 < SHOAL_LANDER_GROUND_POINTS; i++)
      add_edge(ground, vec(points[i][0], points[i][1]), vec(points[i + 1][0], points[i + 1][1]), 0.1f);
  }

  b2Body *add_part(const b2Shape &shape, b2Vec2 at, double angle, float density, float friction,
                   uint16 bits) {
    b2BodyDef def;
    def.type = b2_dynamicBody;
    def.position = at;
    def.angle = static_cast<float>(angle);
    b2Body *part = world.CreateBody(&def);
    b2FixtureDef fixture;
    fixture.shape = &shape;
    fixture.density = density;
    fixture.friction = friction;
    fixture.filter.categoryBits = bits;
    fixture.filter.maskBits = GROUND_BITS;
    part->CreateFixture(&fixture);
    return part;
  }

  void add_hull() {
    b2Vec2 points[SHOAL_LANDER_HULL_POINTS];
    for (int i = 0; i < SHOAL_LANDER_HULL_POINTS; i++)
      points[i] = vec(HULL[i][0] / SCALE, HULL[i][1] / SCALE);
    b2PolygonShape shape;
    shape.Set(points, SHOAL_LANDER_HULL_POINTS);
    hull = add_part(shape, vec(WIDTH / 2, HEIGHT), 0, 5.0f, 0.1f, HULL_BITS);
  }

  void add_leg(int number) {
    int side = number == 0 ? -1 : 1;
    b2PolygonShape shape;
    shape.SetAsBox(static_cast<float>(LEG_HALF_WIDTH / SCALE), static_cast<float>(LEG_HALF_HEIGHT / SCALE));
    legs[number] =
        add_part(shape, vec(WIDTH / 2 - side * LEG_AWAY / SCALE, HEIGHT), side * 0.05, 1.0f, 0.2f, LEG_BITS);
    b2RevoluteJointDef hinge;
    hinge.bodyA = hull;
    hinge.bodyB = legs[number];
    hinge.localAnchorB = vec(side * LEG_AWAY / SCALE, LEG_DOWN / SCALE);
    hinge.enableMotor = hinge.enableLimit = true;
    hinge.maxMotorTorque = 40;
    hinge.motorSpeed = static_cast<float>(0.3 * side);
    hinge.lowerAngle = static_cast<float>(side < 0 ? 0.9 - 0.5 : -0.9);
    hinge.upperAngle = static_cast<float>(side < 0 ? 0.9 : -0.9 + 0.5);
    world.CreateJoint(&hinge);
  }
};

shoal_lander_body *shoal_lander_body_create(const double ground[SHOAL_LANDER_GROUND_POINTS][2],
                                            const double force[2]) {
  shoal_lander_body *body = new (std::nothrow) shoal_lander_body;
  if (!body) return nullptr;
  body->world.SetContactListener(body);
  body->add_ground(ground);
  body->add_hull();
  body->hull->ApplyForceToCenter(vec(force[0], force[1]), true);
  body->add_leg(0);
  body->add_leg(1);
  return body;
}

void shoal_lander_body_destroy(shoal_lander_body *body) { delete body; }

void shoal_lander_body_push(shoal_lander_body *body, const double impulse[2], const double at[2]) {
  body->hull->ApplyLinearImpulse(vec(impulse[0], impulse[1]), vec(at[0], at[1]), true);
}

void shoal_lander_body_step(shoal_lander_body *body) {
  body->world.Step(static_cast<float>(1.0 / 50), 6 * 30, 2 * 30);
}

void shoal_lander_body_look(const shoal_lander_body *body, shoal_lander_view *out) {
  b2Vec2 at = body->hull->GetPosition(), speed = body->hull->GetLinearVelocity();
  out->x = at.x;
  out->y = at.y;
  out->speed_x = speed.x;
  out->speed_y = speed.y;
  out->angle = body->hull->GetAngle();
  out->turn = body->hull->GetAngularVelocity();
  for (int i = 0; i < 2; i++) out->legs_down[i] = body->legs_down[i];
  out->crashed = body->crashed;
  out->awake = body->hull->IsAwake();
}

void shoal_lander_body_outline(const shoal_lander_body *body, float hull[SHOAL_LANDER_HULL_POINTS][2],
                               float legs[2][SHOAL_LANDER_LEG_POINTS][2]) {
  for (int i = 0; i < SHOAL_LANDER_HULL_POINTS; i++) {
    b2Vec2 point = body->hull->GetWorldPoint(vec(HULL[i][0] / SCALE, HULL[i][1] / SCALE));
    hull[i][0] = point.x;
    hull[i][1] = point.y;
  }
  const double corners[SHOAL_LANDER_LEG_POINTS][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
  for (int leg = 0; leg < 2; leg++) {
    for (int i = 0; i < SHOAL_LANDER_LEG_POINTS; i++) {
      b2Vec2 point = body->legs[leg]->GetWorldPoint(
          vec(corners[i][0] * LEG_HALF_WIDTH / SCALE, corners[i][1] * LEG_HALF_HEIGHT / SCALE));
      legs[leg][i][0] = point.x;
      legs[leg][i][1] = point.y;
    }
  }
}
